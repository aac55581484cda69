package controller_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that the survivor's claim is used no more once a leader has answered without it, also where the status cannot be written, or
// the operator ends before: that leader may be lost before the next look.
func TestReconcile_leftOutTorn(t *testing.T) {
	refused := false
	f := start(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, of string, o client.Object,
		opts ...client.SubResourceUpdateOption) error {
		if refused {
			return errors.New("the object has been modified")
		}
		return c.SubResource(of).Update(ctx, o, opts...)
	}}, nil)
	f.found()
	f.before, f.allVoters = f.group.described, f.pods()
	survivor := f.recovering()
	f.must(f.Delete(t.Context(), f.command(survivor)))
	f.group.described = f.before
	for _, m := range f.before.Members {
		m.Active, m.Leader = m.Name != survivor, false
	}
	refused = true
	_ = f.step(2)
	if notes := f.claim(survivor).Annotations; notes[objects.AnnotationLeftOut] == "" || notes[objects.AnnotationLeaves] != "" {
		t.Fatalf("the claim has %v", notes)
	}
	// the leader is of the term in which the survivor's log ends, and may have left entries on it alone
	if note := f.claim(survivor).Annotations[objects.AnnotationLeftOut]; note != "true" {
		t.Errorf("the claim notes the term %s", note)
	}
	refused = false
	f.must(f.step(2))
	if r := f.cluster().Status.Recovery; r.Failed == "" || len(r.Lost) > 0 {
		t.Errorf("the status has %+v", r)
	}
}
