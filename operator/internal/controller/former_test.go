package controller_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that nothing is founded beside pods of another cluster that had the name, such as one that was deleted with its pods orphaned.
func TestReconcile_former(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kv-abcd-1", Namespace: "ns", Labels: map[string]string{
		objects.LabelCluster: "kv", objects.LabelUID: "uid-0"}}}
	f.must(f.Create(t.Context(), old))
	f.must(f.step(3))
	if c := f.cluster(); len(c.Status.Founders) > 0 || !strings.Contains(c.Status.Action, "kv-abcd-1") {
		t.Errorf("doing %q, founders %v", c.Status.Action, c.Status.Founders)
	}
	f.must(f.Delete(t.Context(), old))
	if f.must(f.step(2)); len(f.cluster().Status.Founders) != 3 {
		t.Errorf("the pod is gone, and nothing is founded: %q", f.cluster().Status.Action)
	}
}

// Ensure that claims keep their epochs while members tell none, also of a member that gets a new pod, and that each seat has that of its
// claim.
func TestReconcile_untoldEpoch(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	f.group.described.Epoch = "1-0a1b2c3d"
	f.must(f.step(1))
	f.group.described.Epoch = ""
	pod := f.pods()[1]
	f.must(f.Delete(t.Context(), &pod))
	f.must(f.step(2))
	claim := &corev1.PersistentVolumeClaim{}
	f.must(f.Get(t.Context(), client.ObjectKeyFromObject(&pod), claim))
	if got := claim.Annotations[objects.AnnotationEpoch]; got != "1-0a1b2c3d" || len(f.pods()) != 3 {
		t.Errorf("the epoch is %q, pods %v", got, f.pods())
	}
	if len(f.group.seats) == 0 {
		t.Fatal("no member was asked")
	}
	for _, seat := range f.group.seats {
		if seat.Epoch.Name != "1-0a1b2c3d" {
			t.Errorf("the seat %+v", seat)
		}
	}
}
