package controller_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Ensure that a version whose release does not know the feature level stops no member: it would not start. Pods that are made
// meanwhile have the image that members had, also while no leader answers.
func TestReconcile_refusedVersion(t *testing.T) {
	evicted := 0
	f := start(t, interceptor.Funcs{
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object,
			...client.SubResourceCreateOption) error {
			evicted++
			return nil
		},
	}, nil)
	f.found()
	f.group.described.Level = 2
	f.version("1.0.0")
	f.must(f.step(3))
	st := f.cluster().Status
	at := meta.FindStatusCondition(st.Conditions, "VersionRefused")
	if evicted > 0 || at == nil || at.Status != "True" || !strings.Contains(at.Message, "feature level 2") ||
		!strings.Contains(at.Message, "build 1.1.0 or later") || !strings.Contains(st.Action, "1.0.0") {
		t.Errorf("%d members were stopped; condition %+v, action %q", evicted, at, st.Action)
	}
	described := f.group.described
	for _, leader := range []bool{true, false} {
		if !leader {
			f.group.described = nil
		}
		gone := f.pods()[1]
		f.must(f.Delete(t.Context(), &gone))
		f.must(f.step(1))
		back := &corev1.Pod{}
		f.must(f.Get(t.Context(), client.ObjectKeyFromObject(&gone), back))
		if image := back.Spec.Containers[0].Image; image != "quorate" {
			t.Errorf("with a leader %v: a pod was made with %s", leader, image)
		}
		f.run(back, true)
	}
	f.group.described = described
	f.version("v1.1.0")
	f.must(f.step(1))
	if at := meta.FindStatusCondition(f.cluster().Status.Conditions, "VersionRefused"); evicted != 1 || at != nil {
		t.Errorf("a version that knows the level: %d members were stopped, condition %+v", evicted, at)
	}
}

// Ensure that a pod which got a former release in the moment when the level rose gets back what the others run, also if the
// status remembers no other image, and that a tag which looks like a former release is taken if members run it.
func TestReconcile_refusedVersionOfPods(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	f.group.described.Level = 1
	f.version("1.0.0")
	f.must(f.step(2)) // it evicts a member, and makes its pod
	old := f.imaged("quorate:1.0.0")
	if len(old) != 1 {
		t.Fatalf("below the level that the release does not know %d pods have it", len(old))
	}
	f.run(&old[0], false)
	f.group.described.Level = 2
	for i, m := range f.group.described.Members {
		f.group.described.Members[i].Active = m.Name != old[0].Name
	}
	f.must(f.step(2))
	if left := f.imaged("quorate:1.0.0"); len(left) > 0 || len(f.imaged("quorate")) != 3 {
		t.Errorf("%d pods have the release that does not start; action %q", len(left), f.cluster().Status.Action)
	}
	for _, pod := range f.pods() {
		pod.Spec.Containers[0].Image = "quorate:1.0.0" // a tag of somebody's own
		f.must(f.Update(t.Context(), &pod))
		f.run(&pod, true)
	}
	f.must(f.step(1))
	if at := meta.FindStatusCondition(f.cluster().Status.Conditions, "VersionRefused"); at != nil {
		t.Errorf("what members run is refused: %+v", at)
	}
}

func (f *fixture) version(version string) {
	f.Helper()
	c := f.cluster()
	c.Spec.Version = version
	f.must(f.Update(f.Context(), c))
}

// imaged are the pods that have an image.
func (f *fixture) imaged(image string) (out []corev1.Pod) {
	f.Helper()
	for _, pod := range f.pods() {
		if pod.Spec.Containers[0].Image == image {
			out = append(out, pod)
		}
	}
	return out
}

// Ensure that a release which has no restore founds nothing: its members would wait for the command for ever.
func TestReconcile_restoreOf10(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.Version, c.Spec.Restore = "1.0.0", &v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest"}
	})
	f.must(f.step(8))
	at := meta.FindStatusCondition(f.cluster().Status.Conditions, "VersionRefused")
	if at == nil || !strings.Contains(at.Message, "1.0 has no command that restores") || len(f.pods()) > 0 {
		t.Errorf("condition %+v, %d pods", at, len(f.pods()))
	}
	f.version("1.1.0")
	f.must(f.step(8))
	at = meta.FindStatusCondition(f.cluster().Status.Conditions, "VersionRefused")
	if at != nil || len(f.pods()) != 1 {
		t.Errorf("of 1.1: condition %+v, %d pods", at, len(f.pods()))
	}
}
