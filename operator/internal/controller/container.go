package controller

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// imageOf is the image of the container of a pod that is Quorate: others may stand before it, which a mesh added.
func imageOf(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		if at := &pod.Spec.Containers[i]; at.Name == objects.ContainerQuorate {
			return at.Image
		}
	}
	return ""
}

// containerOf notes what the status tells of that container. A command has ended with it, also where another container runs on.
func containerOf(pod *corev1.Pod, p *decide.Pod) {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.Name != objects.ContainerQuorate {
			continue
		}
		state := &status.State
		p.Running, p.Ready = state.Running != nil, status.Ready
		p.Started = p.Started || status.ContainerID != "" || state.Running != nil || state.Terminated != nil ||
			status.LastTerminationState.Terminated != nil
		if ended := cmp.Or(state.Terminated, status.LastTerminationState.Terminated); ended != nil {
			p.Said = cmp.Or(ended.Message, ended.Reason, p.Said)
		}
		if p.Recovers && state.Terminated != nil {
			p.Ended, p.Succeeded = true, state.Terminated.ExitCode == 0
		}
	}
}
