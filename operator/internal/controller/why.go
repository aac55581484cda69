package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// mostTold is how many bytes of a message of Kubernetes are told.
const mostTold = 400

// cures are what helps where a container waits, by the reason that Kubernetes gives.
var cures = map[string]string{
	"ErrImagePull":               imageCure,
	"ImagePullBackOff":           imageCure,
	"InvalidImageName":           imageCure,
	"CreateContainerConfigError": "correct spec.env, or make the Secret or ConfigMap that it names",
}

const imageCure = "correct spec.image, spec.version or spec.imagePullSecrets"

// waits says why a container of a pod does not serve, init containers first, and what helps; empty: none says so.
func waits(pod *corev1.Pod) string {
	initial := slices.DeleteFunc(slices.Clone(pod.Status.InitContainerStatuses), func(at corev1.ContainerStatus) bool {
		return at.State.Terminated != nil && at.State.Terminated.ExitCode == 0 // it did what it is for
	})
	for _, status := range slices.Concat(initial, pod.Status.ContainerStatuses) {
		why := status.State.Waiting
		ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
		switch {
		case status.Ready:
		case why != nil && why.Reason != "CrashLoopBackOff" && (why.Message != "" || why.Reason != "PodInitializing"):
			return told(strings.Trim(why.Reason+": "+why.Message, ": ")) + arrow(cures[why.Reason])
		case ended != nil && (ended.ExitCode != 0 || status.State.Running == nil):
			return endedSo(pod, &status, ended)
		case status.State.Running != nil && status.Name == objects.ContainerRestore:
			return "its container " + status.Name + " runs"
		}
	}
	return ""
}

// endedSo says how a container ended, by the last line that it wrote.
func endedSo(pod *corev1.Pod, status *corev1.ContainerStatus, ended *corev1.ContainerStateTerminated) string {
	lines := strings.Split(strings.TrimSpace(ended.Message), "\n")
	how := fmt.Sprintf("exit code %d", ended.ExitCode)
	if ended.Reason != "" && ended.Reason != "Error" && ended.Reason != "Completed" {
		how = ended.Reason
	}
	cure := decide.Kubectl(pod.Namespace, "logs %s -c %s", pod.Name, status.Name)
	if status.State.Running != nil {
		cure += " --previous" // else the log is that of the process that ended
	}
	if ended.Reason == "OOMKilled" {
		cure = "raise spec.resources.limits.memory, or lower --memory in spec.args"
	}
	return told(fmt.Sprintf("its container %s ended (%s)%s", status.Name, how, colon(lines[len(lines)-1]))) + arrow(cure)
}

func told(text string) string  { return bounded(text, mostTold) }
func arrow(cure string) string { return prefixed(" → ", cure) }
func colon(text string) string { return prefixed(": ", strings.TrimSpace(text)) }

func prefixed(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

// doing is what the status says of an action, and of an error, if there is one.
func doing(a decide.Action, failed error) string {
	text := a.String()
	if failed != nil && !apierrors.IsConflict(failed) { // somebody changed what was read: that is no trouble
		text = strings.TrimPrefix(text+": "+oneLine(failed), ": ")
	}
	return bounded(text, 1024)
}

// oneLine is the text of an error, of several ones with semicolons between.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}
