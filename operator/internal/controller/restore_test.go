package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
)

// Ensure that a restored cluster is reached by nothing outside of Kubernetes that leads to the one it is like, that it knows the
// password that root had then, and that conditions tell the end of the restore.
func TestRestores(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.Exposure = v1alpha1.Exposure{Type: "LoadBalancer", Annotations: map[string]string{"dns": "kv.example.com"},
			Hosts: []string{"kv.example.com"}}
		c.Spec.Backup, c.Spec.Paused = &v1alpha1.Backup{Place: "s3://b/p"}, true
		c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "now"}
	})
	q := &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns"}, Spec: v1alpha1.QuorateRestoreSpec{
		ClusterName: "past", Like: "kv", From: v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest", RootPasswordSecret: "then"}}}
	f.must(f.Create(t.Context(), q))
	r := &controller.Restores{Client: f.Client, Read: f.Client}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(q)})
	f.must(err)
	made := &v1alpha1.QuorateCluster{}
	f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "past"}, made))
	if e := made.Spec.Exposure; e.Type != "ClusterIP" || len(e.Annotations)+len(e.Hosts) > 0 || made.Spec.Backup != nil || made.Spec.Paused ||
		made.Spec.Restore.RootPasswordSecret != "then" || made.Spec.Auth.RootPasswordSecret != "now" || made.Spec.Members != 3 {
		t.Errorf("%+v", made.Spec)
	}
	conditions := func(want string) {
		t.Helper()
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(q)})
		f.must(err)
		f.must(f.Get(t.Context(), client.ObjectKeyFromObject(q), q))
		got := q.Status.State
		for _, kind := range []string{"Complete", "Failed"} {
			if at := meta.FindStatusCondition(q.Status.Conditions, kind); at != nil && at.Message == q.Status.Message {
				got += fmt.Sprintf(" %s=%s", kind, at.Status)
			}
		}
		if got != want {
			t.Errorf("got %q, want %q: %s", got, want, q.Status.Message)
		}
	}
	conditions("Restoring Complete=False Failed=False")
	made.Status.ClusterID = "abc"
	meta.SetStatusCondition(&made.Status.Conditions, metav1.Condition{Type: "Available", Status: "True", Reason: "Leads"})
	f.must(f.Status().Update(t.Context(), made))
	conditions("Done Complete=True Failed=False")
	q.Status.Conditions = nil // an older operator ended it
	f.must(f.Status().Update(t.Context(), q))
	conditions("Done Complete=True Failed=False")
	q = &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: "over", Namespace: "ns", UID: "r2"}, Spec: v1alpha1.QuorateRestoreSpec{
		ClusterName: "kv", Like: "kv", From: q.Spec.From}}
	f.must(f.Create(t.Context(), q))
	conditions("Failed Complete=False Failed=True")
}

// Ensure that a restore that fails says why: the first member's pod tries it again and again, and its container has the sentence.
func TestReconcile_restoreFails(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.Restore = &v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest"}
	})
	f.must(f.step(8))
	pods := f.pods()
	if len(pods) != 1 {
		t.Fatalf("%d pods", len(pods))
	}
	fails := func(state corev1.ContainerState) string {
		t.Helper()
		pods[0].Status = corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "restore",
			State: state, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
				Reason: "Error", Message: "plan for latest\n  base entry 1\nquorate: it is encrypted\n"}}}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "quorate", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "PodInitializing"}}}}}
		f.must(f.Status().Update(t.Context(), &pods[0]))
		f.must(f.step(1))
		return f.cluster().Status.Action
	}
	const why = "container restore ended (exit code 1): quorate: it is encrypted"
	if got := fails(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}); !strings.Contains(got, why) {
		t.Errorf("it says %q", got)
	}
	if got := fails(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}); !strings.Contains(got, why) {
		t.Errorf("while it tries again, it says %q", got)
	}
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	if got := fails(done); strings.Contains(got, "restore") {
		t.Errorf("once it has succeeded, it says %q", got)
	}
}

// Ensure that a restored cluster gets the image that members of the other one have where the spec's is refused: it would not read a state
// of this level, and founded nothing.
func TestRestores_refusedVersion(t *testing.T) {
	for image, want := range map[string][2]string{"r.example.com:5000/quorate:v1.1.0": {"r.example.com:5000/quorate", "v1.1.0"},
		"quorate@sha256:0a": {"quorate@sha256:0a", ""}} {
		f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
			c.Spec.Version, c.Status.Image = "1.0.0", image
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: controller.VersionRefused, Status: metav1.ConditionTrue})
		})
		q := &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns"}, Spec: v1alpha1.QuorateRestoreSpec{
			ClusterName: "past", Like: "kv", From: v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest"}}}
		f.must(f.Create(t.Context(), q))
		_, err := (&controller.Restores{Client: f.Client, Read: f.Client}).Reconcile(t.Context(),
			ctrl.Request{NamespacedName: client.ObjectKeyFromObject(q)})
		f.must(err)
		made := &v1alpha1.QuorateCluster{}
		f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "past"}, made))
		if made.Spec.Image != want[0] || made.Spec.Version != want[1] {
			t.Errorf("of %s it has image %s and version %q", image, made.Spec.Image, made.Spec.Version)
		}
	}
}
