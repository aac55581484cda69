package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/internal/controller"
)

// nowhere lets no node take a pod.
func (f *fixture) nowhere(pod *corev1.Pod) {
	f.Helper()
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
		Status: corev1.ConditionFalse, Message: "0/2 nodes are available", LastTransitionTime: metav1.NewTime(f.now.Add(-3600e9))}}}
	f.must(f.Status().Update(f.Context(), pod))
}

// Ensure that voters which merely have no node are reported as lost with the cause, and with what brings them back.
func TestReconcile_lossWithoutNode(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	pods := f.pods()
	for _, pod := range pods[1:] {
		f.nowhere(&pod)
	}
	f.group.described, f.group.answers = nil, f.survivor(pods[0].Name, pods)
	f.later(time.Minute)
	at := meta.FindStatusCondition(f.cluster().Status.Conditions, controller.Available)
	want := "No node takes [" + pods[1].Name + " " + pods[2].Name + "], whose claims are there and are not compared: make room"
	if at.Reason != "QuorumLost" || !strings.Contains(at.Message, want) || !strings.Contains(at.Message, "0/2 nodes") {
		t.Errorf("it says %q", at.Message)
	}
}
