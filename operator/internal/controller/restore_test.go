package controller_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
)

// Ensure that a restored cluster is reached by nothing outside of Kubernetes that leads to the one it is like, and that the operator logs
// in with the password that root had then.
func TestRestores(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.Exposure = v1alpha1.Exposure{Type: "LoadBalancer", Annotations: map[string]string{"dns": "kv.example.com"},
			Hosts: []string{"kv.example.com"}}
		c.Spec.Backup = &v1alpha1.Backup{Place: "s3://b/p"}
		c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "now"}
	})
	q := &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns"}, Spec: v1alpha1.QuorateRestoreSpec{
		ClusterName: "past", Like: "kv", RootPasswordSecret: "then", From: v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest"}}}
	f.must(f.Create(t.Context(), q))
	r := &controller.Restores{Client: f.Client, Read: f.Client}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(q)})
	f.must(err)
	made := &v1alpha1.QuorateCluster{}
	f.must(f.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "past"}, made))
	if e := made.Spec.Exposure; e.Type != "ClusterIP" || len(e.Annotations)+len(e.Hosts) > 0 || made.Spec.Backup != nil ||
		made.Spec.Restore == nil || made.Spec.Auth.RootPasswordSecret != "then" || made.Spec.Members != 3 {
		t.Errorf("%+v", made.Spec)
	}
}
