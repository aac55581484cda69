package controller_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Ensure that a cluster which has been founded gets a pod again that was lost, whatever around it is refused; that its status says what
// is; and that no member that works is restarted meanwhile.
func TestReconcile_refusedAround(t *testing.T) {
	for _, row := range []struct {
		name, want string
		spec       func(*v1alpha1.QuorateCluster)
		refused    func(client.Object) bool
		change     func(*v1alpha1.QuorateCluster)
	}{
		{"Certificates", "set rbac.certManager=true", func(c *v1alpha1.QuorateCluster) {
			c.Spec.TLS.Mode, c.Spec.TLS.IssuerRef = "BuiltIn", &v1alpha1.IssuerRef{Name: "issuer", Kind: "Issuer"}
		}, func(o client.Object) bool { _, ok := o.(*unstructured.Unstructured); return ok },
			func(c *v1alpha1.QuorateCluster) { c.Spec.TLS.Mode = "CertManager" }},
		{"a Service", "the Service kv", nil, func(o client.Object) bool { _, ok := o.(*corev1.Service); return ok }, nil},
		{"another Secret of root", "there is no Secret other: make it", func(c *v1alpha1.QuorateCluster) {
			c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root"}
		}, nil, func(c *v1alpha1.QuorateCluster) { c.Spec.Auth.RootPasswordSecret = "other" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			refuse := false
			hooks := interceptor.Funcs{Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption) error {
				if cluster := o.GetObjectKind().GroupVersionKind().Kind == "QuorateCluster"; refuse && !cluster && row.refused != nil &&
					row.refused(o) {
					return apierrors.NewForbidden(schema.GroupResource{Group: "cert-manager.io", Resource: "certificates"}, key.Name, nil)
				}
				return api.Get(ctx, key, o, options...)
			}}
			f := start(t, hooks, row.spec)
			f.found()
			refuse = true
			if c := f.cluster(); row.change != nil {
				row.change(c)
				f.must(f.Update(t.Context(), c))
			}
			_ = f.step(3)
			if got := f.cluster().Status; len(f.pods()) != 3 || !strings.Contains(got.Action, row.want) {
				t.Fatalf("%d pods, doing %q, want …%s…", len(f.pods()), got.Action, row.want)
			}
			if at := meta.FindStatusCondition(f.cluster().Status.Conditions, "Progressing"); at == nil || at.Reason != "Failed" {
				t.Errorf("Progressing is %+v", at)
			}
			c := f.cluster()
			c.Spec.Version = "next"
			f.must(f.Update(t.Context(), c))
			_ = f.step(2)
			if got := f.cluster().Status.Action; len(f.pods()) != 3 || !strings.Contains(got, "waits for its restart") {
				t.Errorf("another version: %d pods, doing %q", len(f.pods()), got)
			}
			gone := f.pods()[1]
			f.must(f.Delete(t.Context(), &gone))
			_ = f.step(3)
			if err := f.Get(t.Context(), client.ObjectKeyFromObject(&gone), &corev1.Pod{}); err != nil {
				t.Errorf("the pod that was lost: %v; doing %q", err, f.cluster().Status.Action)
			}
			if got := f.cluster().Status.Action; !strings.Contains(got, row.want) {
				t.Errorf("doing %q, want …%s…", got, row.want)
			}
		})
	}
}
