package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Ensure that storage.keep counts for claims that are there already, whenever it is set or taken back, and that other owners stay.
func TestReconcile_keep(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	claims := func() []corev1.PersistentVolumeClaim {
		var all corev1.PersistentVolumeClaimList
		f.must(f.List(t.Context(), &all))
		return all.Items
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "uid-x"}
	first := claims()[0]
	first.OwnerReferences = append(first.OwnerReferences, other)
	f.must(f.Update(t.Context(), &first))
	for _, keep := range []bool{true, false, true} {
		c := f.cluster()
		c.Spec.Storage.Keep = keep
		f.must(f.Update(t.Context(), c))
		f.must(f.step(2))
		for i, claim := range claims() {
			owners := map[string]bool{}
			for _, o := range claim.OwnerReferences {
				owners[string(o.UID)] = o.Controller != nil && *o.Controller
			}
			_, others := owners["uid-x"]
			if controls, owns := owners["uid-1"]; owns == keep || controls == keep || others != (i == 0) {
				t.Errorf("keep %v: %s has %+v", keep, claim.Name, claim.OwnerReferences)
			}
		}
	}
}
