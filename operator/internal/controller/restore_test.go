package controller_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
)

// Ensure that a restored cluster is reached by nothing outside of Kubernetes that leads to the one it is like, and that conditions tell
// the end of the restore.
func TestRestores(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.Exposure = v1alpha1.Exposure{Type: "LoadBalancer", Annotations: map[string]string{"dns": "kv.example.com"},
			Hosts: []string{"kv.example.com"}}
		c.Spec.Backup, c.Spec.Paused = &v1alpha1.Backup{Place: "s3://b/p"}, true
	})
	q := &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns"}, Spec: v1alpha1.QuorateRestoreSpec{
		ClusterName: "past", Like: "kv", From: v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest"}}}
	f.must(f.Create(t.Context(), q))
	r := &controller.Restores{Client: f.Client, Read: f.Client}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(q)})
	f.must(err)
	made := &v1alpha1.QuorateCluster{}
	f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "past"}, made))
	if e := made.Spec.Exposure; e.Type != "ClusterIP" || len(e.Annotations)+len(e.Hosts) > 0 || made.Spec.Backup != nil || made.Spec.Paused ||
		made.Spec.Restore == nil || made.Spec.Members != 3 {
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
