package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status is what the API is told of a pod. Earlier is what it was told before: its conditions keep their times.
func Status(p *Pod, earlier corev1.PodStatus, now time.Time) corev1.PodStatus {
	status := *earlier.DeepCopy()
	status.Phase = phase(p)
	status.HostIP, status.PodIP = p.Host, p.Address
	status.HostIPs, status.PodIPs = nil, nil
	if p.Host != "" {
		status.HostIPs = []corev1.HostIP{{IP: p.Host}}
	}
	if p.Address != "" {
		status.PodIPs = []corev1.PodIP{{IP: p.Address}}
	}
	since := metav1.NewTime(p.Since)
	status.StartTime = &since
	status.InitContainerStatuses = statuses(p, p.Spec.InitContainers)
	status.ContainerStatuses = statuses(p, p.Spec.Containers)
	if p.Evicted != "" {
		status.Reason = p.Evicted
	}
	begun, ready := initialized(p), true
	for i := range p.Spec.Containers {
		ready = ready && p.Containers[p.Spec.Containers[i].Name].Ready
	}
	ready = ready && status.Phase == corev1.PodRunning
	set := func(kind corev1.PodConditionType, is bool) { setCondition(&status, kind, is, now) }
	set(corev1.PodReadyToStartContainers, p.Address != "")
	set(corev1.PodInitialized, begun)
	set(corev1.ContainersReady, ready)
	set(corev1.PodReady, ready)
	return status
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, is bool, now time.Time) {
	value := corev1.ConditionFalse
	if is {
		value = corev1.ConditionTrue
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == kind {
			if c.Status != value {
				c.Status, c.LastTransitionTime, c.Reason = value, metav1.NewTime(now), ""
			}
			return
		}
	}
	status.Conditions = append(status.Conditions,
		corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: metav1.NewTime(now)})
}

func initialized(p *Pod) bool {
	for i := range p.Spec.InitContainers {
		if !done(&p.Spec.InitContainers[i], p.Containers[p.Spec.InitContainers[i].Name]) {
			return false
		}
	}
	return true
}

func phase(p *Pod) corev1.PodPhase {
	if p.Evicted != "" {
		return corev1.PodFailed
	}
	for i := range p.Spec.InitContainers {
		spec := &p.Spec.InitContainers[i]
		c := p.Containers[spec.Name]
		if c.State == Exited && c.Code != 0 && !restarts(p, spec, c) {
			return corev1.PodFailed
		}
	}
	started, over, failed := true, true, false
	for i := range p.Spec.Containers {
		spec := &p.Spec.Containers[i]
		c := p.Containers[spec.Name]
		started = started && c.State != Created
		ended := c.State == Exited && (p.Deleting || !restarts(p, spec, c))
		over = over && ended
		failed = failed || ended && c.Code != 0
	}
	switch {
	case over && failed:
		return corev1.PodFailed
	case over:
		return corev1.PodSucceeded
	case started:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

func statuses(p *Pod, specs []corev1.Container) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for i := range specs {
		spec := &specs[i]
		c := p.Containers[spec.Name]
		started := c.State == Running && c.StartedUp
		s := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, ImageID: spec.Image, ContainerID: c.ID,
			Ready:   c.Ready,
			Started: &started, RestartCount: int32(c.Restarts)}
		ended := &corev1.ContainerStateTerminated{ExitCode: int32(c.Code), Reason: "Error", ContainerID: c.ID,
			StartedAt: metav1.NewTime(c.Started), FinishedAt: metav1.NewTime(c.Finished)}
		if c.Code == 0 {
			ended.Reason = "Completed"
		}
		switch {
		case c.State == Running:
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.Started)}
		case c.State == Exited && (p.Deleting || p.Evicted != "" || !restarts(p, spec, c)):
			s.State.Terminated = ended
		case c.State == Exited:
			s.LastTerminationState.Terminated = ended
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: c.Reason}
		default:
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: c.Reason}
			if c.Reason != "" {
				s.State.Waiting.Reason = "CreateContainerError"
			}
		}
		if isInit(p, spec.Name) && !sidecar(spec) {
			s.Ready = c.State == Exited && c.Code == 0
		}
		all = append(all, s)
	}
	return all
}
