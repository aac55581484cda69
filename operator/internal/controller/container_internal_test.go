package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that a container which a mesh put before that of Quorate, or beside it, does not stand for it.
func TestPodOf_injected(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "recovered"}}
	mesh := corev1.ContainerStatus{Name: "mesh", Ready: true, State: running, ContainerID: "m"}
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Name: "mesh", Image: "mesh:1.0.0"}, {Name: "quorate", Image: "quorate:v1.1.0"}}
	if image := imageOf(pod); image != "quorate:v1.1.0" {
		t.Errorf("the image is %s", image)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{mesh, {Name: "quorate", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such tag"}}}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh-init", State: running}}
	p := podOf(pod, nil, &ages{is: map[string]mark{}})
	if p.Running || p.Ready || p.Started || p.Waits != "ImagePullBackOff: no such tag → "+imageCure {
		t.Errorf("beside a mesh that runs: %+v", p)
	}
	pod.Labels = map[string]string{objects.LabelPurpose: objects.PurposeRecover}
	pod.Status.ContainerStatuses[1].State = ended
	if p := podOf(pod, nil, &ages{is: map[string]mark{}}); !p.Ended || !p.Succeeded || !p.Started || p.Running || p.Said != "recovered" {
		t.Errorf("a command that has ended, beside a mesh that runs on: %+v", p)
	}
}
