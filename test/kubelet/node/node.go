package node

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// A Node is a kubelet and its machine.
type Node struct {
	Options
	mu       sync.Mutex
	workers  map[types.UID]*worker
	power    context.Context // ends when the machine is killed
	off      context.CancelFunc
	attached context.CancelFunc // ends what the kubelet does with the API; nil while it is detached
	api      context.Context
	ending   sync.WaitGroup // workers
	frozen   bool
	server   io.Closer // while it is attached
}

// New returns a node that is off.
func New(o Options) *Node { return &Node{Options: o, workers: map[types.UID]*worker{}} }

// Boot switches the machine on: it registers the node and runs what the API has bound to it.
func (n *Node) Boot() error {
	n.mu.Lock()
	if n.off != nil {
		n.mu.Unlock()
		return errors.New(n.Name + " is on already")
	}
	n.power, n.off = context.WithCancel(context.Background())
	n.mu.Unlock()
	if err := os.MkdirAll(filepath.Join(n.Directory, "logs"), 0o755); err != nil {
		return err
	}
	return n.Attach()
}

// Kill switches the machine off at once: processes are killed, and the API hears nothing more. The disk stays.
func (n *Node) Kill() {
	n.Detach()
	n.mu.Lock()
	off := n.off
	n.off = nil
	n.mu.Unlock()
	if off != nil {
		off()
	}
	n.ending.Wait()
}

// Wipe deletes what is on the disk of a machine that is off.
func (n *Node) Wipe() error { return os.RemoveAll(n.Directory) }

// Detach cuts the kubelet off from the API. Its pods go on.
func (n *Node) Detach() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.attached != nil {
		n.attached()
		n.attached, n.api = nil, nil
	}
	if n.server != nil {
		n.server.Close()
		n.server = nil
	}
}

// Attach connects the kubelet to the API again.
func (n *Node) Attach() error {
	n.mu.Lock()
	if n.attached != nil || n.off == nil {
		n.mu.Unlock()
		return errors.New(n.Name + " is off, or attached already")
	}
	ctx, cancel := context.WithCancel(n.power)
	n.api, n.attached = ctx, cancel
	server, err := serve(n.Address, n.workerOf)
	n.server = server
	n.mu.Unlock()
	if err != nil {
		return err
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	go n.beat(ctx)
	store := cache.NewListWatchFromClient(n.Client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", n.Name))
	informer := cache.NewSharedInformer(store, &corev1.Pod{}, 0)
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.observe(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { n.observe(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				n.gone(pod.UID)
			}
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	n.missing(informer.GetStore())
	return nil
}

// missing ends pods that were deleted while the kubelet was detached.
func (n *Node) missing(store cache.Store) {
	present := map[types.UID]bool{}
	for _, o := range store.List() {
		present[o.(*corev1.Pod).UID] = true
	}
	n.mu.Lock()
	var lost []types.UID
	for uid := range n.workers {
		if !present[uid] {
			lost = append(lost, uid)
		}
	}
	n.mu.Unlock()
	for _, uid := range lost {
		n.gone(uid)
	}
}

// Freeze stops the machine as it is: its processes do not run, and the kubelet is silent. Thaw lets it go on.
func (n *Node) Freeze() {
	n.Detach()
	n.setFrozen(true, syscall.SIGSTOP)
}

// Thaw ends what Freeze began.
func (n *Node) Thaw() error {
	n.setFrozen(false, syscall.SIGCONT)
	return n.Attach()
}

func (n *Node) setFrozen(frozen bool, signal syscall.Signal) {
	n.mu.Lock()
	n.frozen = frozen
	var all []*worker
	for _, w := range n.workers {
		all = append(all, w)
	}
	n.mu.Unlock()
	for _, w := range all {
		w.do(func() { w.signal(signal) })
	}
}

// Connect connects all pods of the node to the network, or cuts them off, with the kubelet.
func (n *Node) Connect(connected bool) error {
	n.mu.Lock()
	var failed error
	for _, w := range n.workers {
		w.do(func() {
			if w.sandbox != nil {
				w.sandbox.Connect(connected)
			}
		})
	}
	n.mu.Unlock()
	if connected {
		return errors.Join(failed, n.Attach())
	}
	n.Detach()
	return failed
}

// Processes returns how many processes of containers run.
func (n *Node) Processes() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, w := range n.workers {
		count += int(w.count.Load())
	}
	return count
}

func (n *Node) observe(pod *corev1.Pod) {
	n.mu.Lock()
	w := n.workers[pod.UID]
	if w == nil {
		if n.off == nil || pod.DeletionTimestamp == nil && over(pod) {
			n.mu.Unlock()
			return
		}
		w = newWorker(&n.Options, n.apiContext, pod)
		n.workers[pod.UID] = w
		n.ending.Go(func() {
			w.run(n.power)
			n.mu.Lock()
			delete(n.workers, pod.UID)
			n.mu.Unlock()
		})
	}
	n.mu.Unlock()
	w.do(func() { w.observe(pod) })
}

// over says whether a pod has ended for good.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (n *Node) gone(uid types.UID) {
	n.mu.Lock()
	w := n.workers[uid]
	n.mu.Unlock()
	if w != nil {
		w.do(w.vanished)
	}
}

// workerOf is that of a pod; nil if it does not run here. One that is to end counts only where no other has its name.
func (n *Node) workerOf(namespace, name string) (found *worker) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.workers {
		if w.name.Namespace == namespace && w.name.Name == name && (found == nil || !w.ends.Load()) {
			found = w
		}
	}
	return found
}

// apiContext is for calls of the API; nil while the kubelet is detached.
func (n *Node) apiContext() context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.api
}
