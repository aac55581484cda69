package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Backoff is the pause before the first restart; it doubles up to MaxBackoff, and starts again once a container ran for
// Stable.
const (
	Backoff    = time.Second
	MaxBackoff = 30 * time.Second
	Stable     = time.Minute
)

// State is what a container is doing.
type State int

const (
	Created State = iota // has not run yet
	Running
	Exited
)

// A Container is what was observed of one.
type Container struct {
	State    State
	ID       string // of the run
	Started  time.Time
	Finished time.Time
	Code     int    // exit status of the last run
	Reason   string // why it cannot run, where it was not started: an unknown image, a secret that is absent
	Restarts int
	Crashes  int // restarts since it last ran for Stable
	Stopping bool

	// Its probes say these. Without a probe the first two are true of a container that runs.
	StartedUp, Ready, Unhealthy bool
}

// A Pod is what was observed of a pod.
type Pod struct {
	Spec       *corev1.PodSpec
	Deleting   bool
	Grace      time.Duration // between SIGTERM and SIGKILL
	Evicted    string        // why the pod was failed, if it was
	Containers map[string]*Container
	Address    string
	Host       string
	Since      time.Time
}

// Kind says what an action does.
type Kind int

const (
	Start  Kind = iota // a container
	Stop               // a container, with SIGTERM and Grace
	Remove             // the pod, none of whose containers runs, from the API
)

// An Action is to be performed by the node. Container is empty for Remove.
type Action struct {
	Kind      Kind
	Container string
	Grace     time.Duration
}

// Next returns what is to be done now, and when to ask again at the latest, if nothing is observed before; zero for never.
func Next(p *Pod, now time.Time) ([]Action, time.Time) {
	if p.Deleting || p.Evicted != "" {
		return ending(p), time.Time{}
	}
	for i := range p.Spec.InitContainers {
		spec := &p.Spec.InitContainers[i]
		c := p.Containers[spec.Name]
		if done(spec, c) {
			if sidecar(spec) {
				continue
			}
			if c.State == Exited {
				continue
			}
		}
		actions, wake := keep(p, spec, now)
		return append(sidecars(p, i, now), actions...), wake
	}
	actions := sidecars(p, len(p.Spec.InitContainers), now)
	var wake time.Time
	for i := range p.Spec.Containers {
		more, at := keep(p, &p.Spec.Containers[i], now)
		actions, wake = append(actions, more...), earlier(wake, at)
	}
	return actions, wake
}

// sidecars keeps those among the first n init containers running that restart always.
func sidecars(p *Pod, n int, now time.Time) []Action {
	var actions []Action
	for i := range p.Spec.InitContainers[:n] {
		if spec := &p.Spec.InitContainers[i]; sidecar(spec) {
			more, _ := keep(p, spec, now)
			actions = append(actions, more...)
		}
	}
	return actions
}

// ending stops all containers, sidecars after the others, and then removes the pod if it is deleted.
func ending(p *Pod) []Action {
	var actions []Action
	running := false
	stop := func(specs []corev1.Container, which func(*corev1.Container) bool) {
		for i := range specs {
			c := p.Containers[specs[i].Name]
			if c.State != Running || !which(&specs[i]) {
				continue
			}
			running = true
			if !c.Stopping {
				actions = append(actions, Action{Kind: Stop, Container: specs[i].Name, Grace: p.Grace})
			}
		}
	}
	stop(p.Spec.Containers, func(*corev1.Container) bool { return true })
	stop(p.Spec.InitContainers, func(c *corev1.Container) bool { return !sidecar(c) })
	if running {
		return actions
	}
	stop(p.Spec.InitContainers, sidecar)
	if !running && p.Deleting {
		actions = append(actions, Action{Kind: Remove})
	}
	return actions
}

// keep starts a container that shall run, and stops one that is unhealthy.
func keep(p *Pod, spec *corev1.Container, now time.Time) ([]Action, time.Time) {
	c := p.Containers[spec.Name]
	switch {
	case c.State == Running && c.Unhealthy && !c.Stopping:
		return []Action{{Kind: Stop, Container: spec.Name, Grace: p.Grace}}, time.Time{}
	case c.State == Running:
		return nil, time.Time{}
	case c.State == Exited && !restarts(p, spec, c):
		return nil, time.Time{}
	}
	if at := c.Finished.Add(Pause(c.Crashes)); !c.Finished.IsZero() && now.Before(at) {
		return nil, at
	}
	return []Action{{Kind: Start, Container: spec.Name}}, time.Time{}
}

// Pause is how long a container waits that crashed so many times in a row.
func Pause(crashes int) time.Duration {
	if crashes <= 0 {
		return 0
	}
	return min(MaxBackoff, Backoff<<min(crashes-1, 10))
}

// sidecar says whether an init container stays for the life of the pod.
func sidecar(spec *corev1.Container) bool {
	return spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// done says whether the containers after an init container may start.
func done(spec *corev1.Container, c *Container) bool {
	if sidecar(spec) {
		return c.State == Running && c.StartedUp
	}
	return c.State == Exited && c.Code == 0
}

func restarts(p *Pod, spec *corev1.Container, c *Container) bool {
	if sidecar(spec) {
		return true
	}
	policy := p.Spec.RestartPolicy
	if policy == corev1.RestartPolicyAlways && isInit(p, spec.Name) {
		policy = corev1.RestartPolicyOnFailure
	}
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && c.Code != 0
}

func isInit(p *Pod, name string) bool {
	for i := range p.Spec.InitContainers {
		if p.Spec.InitContainers[i].Name == name {
			return true
		}
	}
	return false
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Ended notes the end of a run, and whether the next one has to wait.
func (c *Container) Ended(code int, now time.Time) {
	if now.Sub(c.Started) >= Stable {
		c.Crashes = 0
	}
	c.State, c.Code, c.Finished = Exited, code, now
	c.Crashes++
	c.Stopping, c.StartedUp, c.Ready, c.Unhealthy = false, false, false, false
}

// Began notes the start of a run.
func (c *Container) Began(id string, now time.Time) {
	if c.State == Exited {
		c.Restarts++
	}
	c.State, c.ID, c.Started, c.Reason = Running, id, now, ""
	c.Stopping, c.StartedUp, c.Ready, c.Unhealthy = false, false, false, false
}

// Failed notes that a run could not begin.
func (c *Container) Failed(reason string, now time.Time) {
	c.Reason, c.Finished = reason, now
	c.Crashes++
}
