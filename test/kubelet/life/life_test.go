package life

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A world plays a pod's life: events change what is observed, and what Next says is performed at once.
type world struct {
	pod     *Pod
	now     time.Time
	actions []string
	removed bool
	wake    time.Time
}

func (w *world) settle() {
	for range 20 {
		actions, wake := Next(w.pod, w.now)
		w.wake = wake
		if len(actions) == 0 {
			return
		}
		for _, a := range actions {
			switch a.Kind {
			case Start:
				w.actions = append(w.actions, "start "+a.Container)
				w.pod.Containers[a.Container].Began("id", w.now)
			case Stop:
				w.actions = append(w.actions, fmt.Sprintf("stop %s %v", a.Container, a.Grace))
				w.pod.Containers[a.Container].Stopping = true
			case Remove:
				w.actions = append(w.actions, "remove")
				w.removed = true
				return
			}
		}
	}
	w.actions = append(w.actions, "…") // it does not come to rest
}

// play performs one event: "CONTAINER up|unhealthy|exits CODE|fails", "delete", "evict", "wait DURATION".
func (w *world) play(event string) {
	words := strings.Fields(event)
	switch words[0] {
	case "delete":
		w.pod.Deleting = true
	case "evict":
		w.pod.Evicted = "Evicted"
	case "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			panic(err)
		}
		w.now = w.now.Add(d)
	default:
		c := w.pod.Containers[words[0]]
		switch words[1] {
		case "up":
			c.StartedUp, c.Ready = true, true
		case "unhealthy":
			c.Unhealthy = true
		case "exits":
			code := 0
			fmt.Sscan(words[2], &code)
			c.Ended(code, w.now)
		}
	}
}

func pod(policy corev1.RestartPolicy, names ...string) *Pod {
	p := &Pod{Spec: &corev1.PodSpec{RestartPolicy: policy}, Grace: 30 * time.Second, Containers: map[string]*Container{},
		Address: "10.77.1.1",
		Since:   start}
	for _, name := range names {
		kind, name, found := strings.Cut(name, ":")
		if !found {
			kind, name = "", kind
		}
		c := corev1.Container{Name: name}
		always := corev1.ContainerRestartPolicyAlways
		switch kind {
		case "init":
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		case "sidecar":
			c.RestartPolicy = &always
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
		p.Containers[name] = &Container{}
	}
	return p
}

func TestNext(t *testing.T) {
	always, onFailure, never := corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	for _, test := range []struct {
		name, containers string
		policy           corev1.RestartPolicy
		events           string // separated by commas
		want             string
		phase            corev1.PodPhase
		ready            bool
	}{
		{"all start at once", "a b", always, "", "start a, start b", corev1.PodRunning, false},
		{"ready once all are", "a b", always, "a up, b up", "start a, start b", corev1.PodRunning, true},
		{"one is not ready", "a b", always, "a up", "start a, start b", corev1.PodRunning, false},
		{"init containers in order", "init:x init:y a", always, "x exits 0, y exits 0, a up", "start x, start y, start a",
			corev1.PodRunning, true},
		{"an init container has not ended", "init:x a", always, "", "start x", corev1.PodPending, false},
		{"an init container fails, and is tried again after a pause", "init:x a", always, "x exits 1, wait 2s",
			"start x, start x", corev1.PodPending, false},
		{"an init container fails for good", "init:x a", never, "x exits 1, wait 1m", "start x", corev1.PodFailed, false},
		{"a sidecar starts before the others, and stays", "sidecar:s a", always, "s up, a up", "start s, start a",
			corev1.PodRunning, true},
		{"a sidecar that ends starts again", "sidecar:s a", always, "s up, s exits 1, wait 1s",
			"start s, start a, start s", corev1.PodRunning, false},
		{"a crash waits", "a", always, "a exits 1", "start a", corev1.PodRunning, false},
		{"a crash is over after the pause", "a", always, "a exits 1, wait 1s", "start a, start a", corev1.PodRunning, false},
		{"the pause doubles", "a", always, "a exits 1, wait 1s, a exits 1, wait 1s", "start a, start a",
			corev1.PodRunning, false},
		{"it ended well, and runs again", "a", always, "a exits 0, wait 1s", "start a, start a", corev1.PodRunning, false},
		{"a job has ended", "a", never, "a exits 0, wait 1m", "start a", corev1.PodSucceeded, false},
		{"a job has failed", "a", never, "a exits 3, wait 1m", "start a", corev1.PodFailed, false},
		{"a job is tried again", "a", onFailure, "a exits 3, wait 1m, a exits 0, wait 1m", "start a, start a",
			corev1.PodSucceeded, false},
		{"unhealthy", "a", always, "a up, a unhealthy", "start a, stop a 30s", corev1.PodRunning, true},
		{"unhealthy, and again", "a", always, "a unhealthy, a exits 143, wait 1s, a up", "start a, stop a 30s, start a",
			corev1.PodRunning, true},
		{"deleted", "a b", always, "delete, a exits 0, b exits 0", "start a, start b, stop a 30s, stop b 30s, remove",
			corev1.PodSucceeded, false},
		{"deleted, and one runs on", "a b", always, "delete, a exits 0", "start a, start b, stop a 30s, stop b 30s",
			corev1.PodRunning, false},
		{"deleted while it waits", "a", always, "a exits 1, delete", "start a, remove", corev1.PodFailed, false},
		{"sidecars end last", "sidecar:s a", always, "s up, delete, a exits 0, s exits 0",
			"start s, start a, stop a 30s, stop s 30s, remove", corev1.PodSucceeded, false},
		{"evicted stays in the API", "a", always, "evict, a exits 0", "start a, stop a 30s", corev1.PodFailed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{pod: pod(test.policy, strings.Fields(test.containers)...), now: start}
			w.settle()
			for _, event := range strings.Split(test.events, ", ") {
				if event != "" {
					w.play(event)
					w.settle()
				}
			}
			if got := strings.Join(w.actions, ", "); got != test.want {
				t.Errorf("it did: %s\nwant:   %s", got, test.want)
			}
			status := Status(w.pod, corev1.PodStatus{}, w.now)
			if status.Phase != test.phase {
				t.Errorf("the phase is %s, want %s", status.Phase, test.phase)
			}
			ready := slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if ready != test.ready {
				t.Errorf("ready is %v, want %v", ready, test.ready)
			}
		})
	}
}

// A node is told when the next restart is due.
func TestNext_wakes(t *testing.T) {
	w := &world{pod: pod(corev1.RestartPolicyAlways, "a", "b"), now: start}
	w.settle()
	w.play("a exits 1")
	w.settle()
	if want := start.Add(Backoff); !w.wake.Equal(want) {
		t.Errorf("it wakes at %v, want %v", w.wake, want)
	}
}

func TestPause(t *testing.T) {
	for crashes, want := range map[int]time.Duration{0: 0, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second,
		6: MaxBackoff, 1000: MaxBackoff} {
		if got := Pause(crashes); got != want {
			t.Errorf("after %d crashes the pause is %v, want %v", crashes, got, want)
		}
	}
}

// A container that ran for long enough starts again soon.
func TestEnded_stable(t *testing.T) {
	c := &Container{Crashes: 9}
	c.Began("id", start)
	c.Ended(1, start.Add(Stable))
	if c.Crashes != 1 || c.Restarts != 0 {
		t.Errorf("%d crashes and %d restarts, want 1 and 0", c.Crashes, c.Restarts)
	}
}

func TestProbe(t *testing.T) {
	spec := &corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}
	var p Probe
	got := ""
	for _, success := range []bool{true, true, false, true, false, false, false, true} {
		passed, failed := p.Observe(spec, success)
		switch {
		case passed:
			got += "p"
		case failed:
			got += "f"
		default:
			got += "-"
		}
	}
	if got != "-p----f-" {
		t.Errorf("results are %s, want -p----f-", got)
	}
}

// Conditions keep the time at which they changed.
func TestStatus_times(t *testing.T) {
	w := &world{pod: pod(corev1.RestartPolicyAlways, "a"), now: start}
	w.settle()
	first := Status(w.pod, corev1.PodStatus{}, start)
	w.play("a up")
	second := Status(w.pod, first, start.Add(time.Minute))
	for _, c := range second.Conditions {
		want := start
		if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			want = start.Add(time.Minute)
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s changed at %v, want %v", c.Type, c.LastTransitionTime, want)
		}
	}
}

// An init container that has done its work does not wait for a restart, though the pod's policy is Always.
func TestStatus_initDone(t *testing.T) {
	w := &world{pod: pod(corev1.RestartPolicyAlways, "init:x", "a"), now: start}
	w.settle()
	w.play("x exits 0")
	w.settle()
	status := Status(w.pod, corev1.PodStatus{}, start)
	if s := status.InitContainerStatuses[0]; s.State.Terminated == nil || s.State.Terminated.Reason != "Completed" ||
		!s.Ready {
		t.Errorf("its status is %+v", s)
	}
}
