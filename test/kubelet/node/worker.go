package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/test/kubelet/life"
	"github.com/quorate/quorate/test/kubelet/network"
)

const (
	refreshEvery = 3 * time.Second // how soon a changed secret, or a larger claim, reaches a pod
	retryAfter   = time.Second
)

// A worker owns one pod on a node. All that it has is touched by its goroutine alone; others give it functions to call.
type worker struct {
	node    *Options
	api     func() context.Context // for calls of the API; nil while the kubelet is detached
	pod     *corev1.Pod
	life    *life.Pod
	events  *queue
	known   map[string]map[string]string // the last contents of configuration maps and secrets
	name    types.NamespacedName
	sandbox *network.Sandbox
	network atomic.Pointer[network.Sandbox] // the same, for others
	volumes map[string]string               // directories, once all are there
	trouble string                          // why the pod cannot begin
	runs    map[string]*run
	written map[string][]*output // of the last runs of each container
	tokens  map[string]token
	told    *corev1.PodStatus
	deleted bool // from the API
	over    bool
	fresh   time.Time // when volumes were last compared with the API
	count   atomic.Int32
	ends    atomic.Bool // the pod is to be deleted
}

func newWorker(n *Options, api func() context.Context, pod *corev1.Pod) *worker {
	w := &worker{node: n, api: api, pod: pod,
		name:   types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
		events: newQueue(), known: map[string]map[string]string{},
		runs: map[string]*run{}, written: map[string][]*output{},
		tokens: map[string]token{}}
	w.life = &life.Pod{Spec: &pod.Spec, Containers: map[string]*life.Container{}, Host: n.Address, Since: time.Now()}
	if pod.Status.StartTime != nil {
		w.life.Since = pod.Status.StartTime.Time
	}
	for _, c := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		w.life.Containers[c.Name] = &life.Container{}
	}
	for _, s := range pod.Status.ContainerStatuses { // of a kubelet that was here before
		c := w.life.Containers[s.Name]
		c.Restarts = int(s.RestartCount)
		if s.State.Running != nil || s.LastTerminationState.Terminated != nil {
			c.State, c.Code = life.Exited, 128+int(syscall.SIGKILL)
		}
	}
	return w
}

// do calls f in the worker's goroutine, later. A worker that has ended calls nothing.
func (w *worker) do(f func()) { w.events.put(f) }

// ask calls f in the worker's goroutine, and waits for that. It has an error if the worker does not come to it.
func (w *worker) ask(ctx context.Context, f func()) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	done := make(chan struct{})
	w.do(func() {
		if ctx.Err() == nil {
			f()
		}
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *worker) directory() string {
	return filepath.Join(w.node.Directory, "pods", string(w.pod.UID))
}

// run works until the pod is gone, or the machine is off.
func (w *worker) run(power context.Context) {
	defer w.close()
	for !w.over {
		wake := w.step()
		timer := time.NewTimer(min(max(time.Until(wake), 0), refreshEvery))
		select {
		case <-w.events.some:
			for _, f := range w.events.take() {
				f()
			}
		case <-timer.C:
		case <-power.Done():
			w.signal(syscall.SIGKILL)
			for _, r := range w.runs {
				<-r.ended
			}
			return
		}
		timer.Stop()
	}
}

// step does what is to be done now, tells the API, and returns when to come again.
func (w *worker) step() time.Time {
	now := time.Now()
	wake := now.Add(refreshEvery)
	if api := w.api(); api != nil && !w.life.Deleting && now.Sub(w.fresh) >= w.pace() {
		w.fresh = now
		ctx, cancel := context.WithTimeout(api, callTime)
		w.prepare(ctx)
		cancel()
	}
	if w.sandbox == nil || w.volumes == nil {
		wake = now.Add(retryAfter)
		if w.life.Deleting {
			w.perform(life.Next(w.life, now))
		}
	} else if at := w.perform(life.Next(w.life, now)); !at.IsZero() && at.Before(wake) {
		wake = at
	}
	if !w.over {
		w.tell()
	}
	return wake
}

func (w *worker) pace() time.Duration {
	if w.volumes == nil {
		return retryAfter
	}
	return refreshEvery
}

// prepare makes the pod's network and volumes, or compares the latter with the API.
func (w *worker) prepare(ctx context.Context) {
	if w.sandbox == nil {
		sandbox, err := w.node.Network.Sandbox()
		if err != nil {
			w.trouble = err.Error()
			return
		}
		w.sandbox, w.life.Address = sandbox, sandbox.Address
		w.network.Store(sandbox)
	}
	first := w.volumes == nil
	directories := map[string]string{}
	for i := range w.pod.Spec.Volumes {
		v := &w.pod.Spec.Volumes[i]
		directory, err := w.volume(ctx, v)
		if err == nil && (first || v.PersistentVolumeClaim == nil && v.EmptyDir == nil && v.HostPath == nil) {
			err = w.own(directory)
		}
		if err != nil {
			w.trouble = fmt.Sprintf("volume %s: %v", v.Name, err)
			return
		}
		directories[v.Name] = directory
	}
	w.volumes, w.trouble = directories, ""
}

func (w *worker) perform(actions []life.Action, wake time.Time) time.Time {
	for _, a := range actions {
		switch a.Kind {
		case life.Start:
			w.start(a.Container)
			wake = time.Now()
		case life.Stop:
			w.stop(a.Container, a.Grace)
		case life.Remove:
			w.remove()
		}
	}
	return wake
}

// observe takes what the API says of the pod.
func (w *worker) observe(pod *corev1.Pod) {
	w.pod = pod
	w.life.Spec = &pod.Spec
	if pod.DeletionTimestamp != nil {
		w.ends.Store(true)
		w.life.Deleting = true
		w.life.Grace = 30 * time.Second
		if pod.DeletionGracePeriodSeconds != nil {
			w.life.Grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		}
	} else if pod.Spec.TerminationGracePeriodSeconds != nil {
		w.life.Grace = time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
}

// vanished takes that the API has the pod no more: it was deleted by force.
func (w *worker) vanished() {
	w.ends.Store(true)
	w.deleted, w.life.Deleting, w.life.Grace = true, true, 2*time.Second
}

// remove removes the pod, none of whose containers runs, from the API.
func (w *worker) remove() {
	if !w.deleted {
		api := w.api()
		if api == nil {
			return
		}
		w.tell()
		ctx, cancel := context.WithTimeout(api, callTime)
		defer cancel()
		var none int64
		uid := w.pod.UID
		err := w.node.Client.CoreV1().Pods(w.pod.Namespace).Delete(ctx, w.pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &none,
				Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
			return // the next step tries again
		}
	}
	w.over = true
}

// tell writes the pod's status, if it has changed.
func (w *worker) tell() {
	api := w.api()
	if api == nil || w.deleted {
		return
	}
	for _, c := range w.life.Containers {
		if w.trouble != "" && c.State == life.Created {
			c.Reason = w.trouble
		}
	}
	status := life.Status(w.life, w.pod.Status, time.Now())
	if w.told != nil && reflect.DeepEqual(*w.told, status) {
		return
	}
	ctx, cancel := context.WithTimeout(api, callTime)
	defer cancel()
	patch, err := statusPatch(w.pod.UID, status)
	if err != nil {
		return
	}
	_, err = w.node.Client.CoreV1().Pods(w.pod.Namespace).Patch(ctx, w.pod.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err == nil {
		w.told = &status
	}
}

// signal sends a signal to all containers.
func (w *worker) signal(s syscall.Signal) {
	for _, r := range w.runs {
		r.process.Signal(s)
	}
}

// close frees what the pod had on the machine.
func (w *worker) close() {
	if w.sandbox != nil {
		w.network.Store(nil)
		w.sandbox.Close()
	}
	if w.over {
		os.RemoveAll(w.directory())
	}
}
