package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that a node is lost once the operator has seen it not ready for as long as the spec says, whatever the clocks say of those that
// wrote since when: a clock that is behind loses no node at once, and one that is ahead lets none wait for hours.
func TestReconcile_nodeClocks(t *testing.T) {
	for name, written := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			f := start(t, interceptor.Funcs{}, nil)
			f.found()
			pods := f.pods()
			f.must(f.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
					LastTransitionTime: metav1.NewTime(f.now.Add(written))}}}}))
			for _, pod := range pods[1:] {
				pod.Spec.NodeName = "n1"
				f.must(f.Update(t.Context(), &pod))
			}
			f.group.described, f.group.answers = nil, f.survivor(pods[0].Name, pods)
			f.later(29 * time.Second)
			if loss := f.cluster().Status.QuorumLoss; loss != nil {
				t.Errorf("lost after 29 s: %+v", loss)
			}
			f.later(time.Second)
			if f.cluster().Status.QuorumLoss == nil {
				t.Errorf("not lost after 30 s: %q", f.cluster().Status.Action)
			}
		})
	}
}

// Ensure that a membership job which waits for a lost member is cancelled once the operator has seen for long that it does not move,
// whatever the clock of the leader said when it moved last, and whether one answers at each look.
func TestReconcile_jobClocks(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	f.must(f.Delete(t.Context(), f.claim(f.pods()[2].Name)))
	m := f.group.described.Members[2]
	m.Active, m.CaughtUp = false, false
	job := &quoratepb.Job{Id: 7, State: "running", UpdatedMs: f.now.Add(-time.Hour).UnixMilli(), Spec: &quoratepb.ChangeSpec{Kind: "replace"}}
	f.group.jobs = []*quoratepb.Job{job}
	cancels := func() (n int) {
		for _, a := range f.group.asked {
			if a.Kind == decide.Cancel {
				n++
			}
		}
		return n
	}
	f.later(4 * time.Minute)
	job.UpdatedMs = f.now.Add(-2 * time.Hour).UnixMilli() // it moved, under a leader whose clock is behind
	f.later(4 * time.Minute)
	if n := cancels(); n > 0 {
		t.Fatalf("cancelled %d times a moment after it moved", n)
	}
	described := f.group.described
	f.group.described = nil
	f.later(time.Minute)
	f.group.described = described
	if f.must(f.step(1)); cancels() == 0 {
		t.Errorf("not cancelled after five minutes: %q", f.cluster().Status.Action)
	}
}
