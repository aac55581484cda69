package membership_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// cordon marks members of c.
func (c *pretended) cordon(marked ...consensus.MemberID) *pretended {
	for i := range c.config.Members {
		m := &c.config.Members[i]
		m.Cordoned = slices.Contains(marked, m.ID)
	}
	return c
}

// Ensure what plans say of marks: what is refused, what is done already, what is worth a warning, and how to take it back.
func TestDraft_cordon(t *testing.T) {
	spec := func(cordon, uncordon ids) membership.Spec { return membership.Spec{Cordon: cordon, Uncordon: uncordon} }
	for _, tc := range []struct {
		name    string
		marked  ids
		leader  consensus.MemberID
		spec    membership.Spec
		steps   string
		blocked string
		warned  string
		undo    string
		done    bool
	}{
		{name: "already", marked: ids{2}, spec: spec(ids{2}, nil), done: true},
		{name: "not cordoned", spec: spec(nil, ids{2}), done: true},
		{name: "one of two already", marked: ids{2}, spec: spec(ids{2, 3}, nil), steps: "cordon m3", warned: "m2 is cordoned already",
			undo: "quorate member uncordon m3"},
		{name: "uncordon", marked: ids{2}, spec: spec(nil, ids{2, 3}), steps: "uncordon m2", warned: "m3 is not cordoned",
			undo: "quorate member cordon m2"},
		{name: "one for the other", marked: ids{2}, spec: spec(ids{3}, ids{2}), steps: "cordon m3 and uncordon m2",
			undo: "quorate member change --cordon m2 --uncordon m3"},
		{name: "all voters", marked: ids{2}, spec: spec(ids{1, 3}, nil), blocked: "every voter would be cordoned"},
		{name: "nobody of that name", spec: spec(ids{0x3f}, nil), blocked: "member 3f is unknown"},
		{name: "who goes", spec: membership.Spec{Remove: ids{2}, Cordon: ids{2}}, blocked: "cannot be cordoned"},
		{name: "both", spec: spec(ids{2}, ids{2}), blocked: "more than once"},
		{name: "with a drain", spec: membership.Spec{Drain: ids{2}, Cordon: ids{2}}, blocked: "drain goes with no other change"},
		{name: "the last that is not goes", marked: ids{2, 3}, spec: membership.Spec{Demote: ids{1}},
			steps: "make m1 a learner in one step; settle: the change is final", warned: "every voter is cordoned afterwards",
			undo: "quorate member promote m1"},
		{name: "leads on a cordon", marked: ids{1}, spec: spec(ids{1}, nil), steps: "hand leadership from m1 to m2 or m3, " +
			"whichever has most of the log", warned: "m1 is cordoned already"},
		{name: "drain to nobody", marked: ids{2, 3}, spec: membership.Spec{Drain: ids{1}}, blocked: "uncordon one first"},
		{name: "drain passes over", marked: ids{3}, spec: membership.Spec{Drain: ids{1}}, steps: "hand leadership from m1 to m2"},
	} {
		p := membership.Draft(&tc.spec, found(t, 3, 1).cordon(tc.marked...).view())
		var steps []string
		for _, step := range p.Steps {
			steps = append(steps, step.Title)
		}
		blocked, warned := strings.Join(p.Blockers, "; "), strings.Join(p.Warnings, "; ")
		if (blocked == "") != (tc.blocked == "") || !strings.Contains(blocked, tc.blocked) {
			t.Errorf("%s: blocked by %q, want %q", tc.name, blocked, tc.blocked)
			continue
		}
		if tc.blocked == "" && strings.Join(steps, "; ") != tc.steps || p.Done != tc.done || p.Undo != tc.undo ||
			!strings.Contains(warned, tc.warned) {
			t.Errorf("%s: steps %q, done %v, warnings %q, undo %q", tc.name, steps, p.Done, warned, p.Undo)
		}
	}
}

// Ensure that a job which cordons the leader ends once another member leads, at once if none can, and when it is cancelled.
func TestNext_cordonedLeader(t *testing.T) {
	job := membership.Job{ID: 1, State: membership.StateRunning, Spec: membership.Spec{Cordon: ids{1}}}
	c := found(t, 3, 0).cordon(1)
	got := membership.Next(&job, c.view())
	if want := "waits until m1, which is cordoned, has handed leadership to m2 or m3"; !got.Wait || !strings.HasPrefix(got.Message, want) {
		t.Errorf("while it leads: %+v", got)
	}
	job.CancelAsked = true
	if got := membership.Next(&job, c.view()); got.End != membership.StateDone || !strings.HasPrefix(got.Message, "too late to cancel") {
		t.Errorf("cancelled: %+v", got)
	}
	job.CancelAsked = false
	c.silence(2, 3)
	got = membership.Next(&job, c.view())
	if want := "m1, m2 and m3 vote; m1 is cordoned: m1 leads on until another voter can"; got.End != membership.StateDone || got.Message != want {
		t.Errorf("nobody else can lead: %+v", got)
	}
}

// Ensure that automatic care gives the place of a dead voter to a standby that may lead, if there is one.
func TestCare_cordonedStandby(t *testing.T) {
	for _, tc := range []struct {
		marked ids
		want   consensus.MemberID
	}{{nil, 4}, {ids{4}, 5}, {ids{4, 5}, 4}} {
		w := cared(t, 3, 2)
		w.cordon(tc.marked...)
		w.settle()
		w.kill(3)
		if a := w.settle(); a.Spec == nil || !slices.Equal(a.Spec.Promote, ids{tc.want}) {
			t.Errorf("cordoned %v: got %+v, want %v", tc.marked, a, tc.want)
		}
	}
}
