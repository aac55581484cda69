package membership_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// restored makes a voter one whose old directory was put back: it answers, and never catches up.
func (c *pretended) restored(id consensus.MemberID) *pretended {
	m := c.seen[id]
	m.CaughtUp, m.Match, m.State = false, 0, "probe"
	return c
}

// Ensure that a voter that answers and does not catch up counts for nothing: neither now, nor when others are to go.
func TestDraft_laggardCountsNowhere(t *testing.T) {
	p := membership.Draft(&membership.Spec{Remove: ids{2}}, found(t, 3, 0).restored(3).view())
	if p.Now.Active != 2 || p.Now.Tolerates != 0 {
		t.Errorf("one of three lags: got %+v, want two that count and no tolerance", p.Now)
	}
	want := "removing m2 would leave 2 voters of which only 1 answers and has caught up: m3 is 5000 entries of the log " +
		"behind, wait until it has caught up; if it stays so, see its log, or remove m3 instead"
	if !slices.Equal(p.Blockers, []string{want}) {
		t.Errorf("got  %q\nwant %q", p.Blockers, want)
	}
	if p = membership.Draft(&membership.Spec{Remove: ids{3}}, found(t, 3, 0).restored(3).view()); len(p.Blockers) > 0 {
		t.Errorf("the laggard itself may not go: %v", p.Blockers)
	}
	c := found(t, 3, 0).restored(3)
	job := membership.Job{ID: 1, State: membership.StateRunning, Spec: membership.Spec{Remove: ids{2}}}
	if action := membership.Next(&job, c.view()); !action.Wait || action.Change != nil {
		t.Errorf("a job goes on: %+v", action)
	}
}

// Ensure that no newcomer takes the place of a member that is gone, whichever operator asked first.
func TestDraft_replacedAlready(t *testing.T) {
	c := found(t, 3, 0)
	c.tombs = ids{0x3f}
	spec := membership.Spec{Kind: membership.KindReplace, Remove: ids{0x3f}, Add: []membership.Newcomer{newcomer(7)}}
	p := membership.Draft(&spec, c.view())
	if len(p.Blockers) != 1 || !strings.Contains(p.Blockers[0], "was replaced or removed already") {
		t.Errorf("got %q", p.Blockers)
	}
	queued := membership.Job{ID: 2, Spec: spec}
	if action := membership.Next(&queued, c.view()); action.End != membership.StateFailed {
		t.Errorf("at its turn: %+v", action)
	}
}

func TestDraft_names(t *testing.T) {
	other := membership.Newcomer{Name: "m2", PeerURLs: []string{url(7)}}
	p := membership.Draft(&membership.Spec{Add: []membership.Newcomer{other}}, found(t, 3, 0).view())
	want := "the name m2 belongs to member 2 at http://10.0.2.1:2380: choose another, or replace that member"
	if !slices.Equal(p.Blockers, []string{want}) {
		t.Errorf("got %q, want %q", p.Blockers, want)
	}
	same := membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Add: []membership.Newcomer{other}}
	p = membership.Draft(&same, found(t, 3, 0).view())
	if len(p.Blockers) > 0 {
		t.Fatalf("a successor of the same name: %v", p.Blockers)
	}
	c := found(t, 3, 0)
	other.ID = 7
	job := membership.Job{ID: 1, Spec: membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Add: []membership.Newcomer{other}}}
	job.NoteNames(c.view())
	c.run(&job, func(int) {})
	if job.State != membership.StateDone || strings.Contains(job.Message, "switched off") {
		t.Errorf("%v: %q: nobody is to be switched off", job.State, job.Message)
	}
	for _, step := range p.Steps {
		if strings.Contains(step.Title+step.Detail, "ffff") {
			t.Errorf("a step tells an id that nobody has: %q", step.Title)
		}
	}
}

func TestSpec_Rivals(t *testing.T) {
	add := []membership.Newcomer{newcomer(7)}
	open := membership.Job{
		ID: 0xa1, State: membership.StateRunning, Names: []membership.Named{{ID: 3, Name: "m3"}, {ID: 5, Name: "m5"}},
		Spec: membership.Spec{Kind: membership.KindReplace, Remove: ids{3}, Add: add, Promote: ids{5}},
	}
	for _, tc := range []struct {
		name string
		spec membership.Spec
		want string
	}{
		{"the same member replaced by another", membership.Spec{
			Kind: membership.KindReplace, Remove: ids{3}, Add: []membership.Newcomer{newcomer(8)},
		}, "job a1 removes m3 already (replace m3 by m7 and m5)"},
		{"demoted meanwhile", membership.Spec{Demote: ids{3}}, "job a1 removes m3 "},
		{"the same learner twice", membership.Spec{Promote: ids{5}}, "job a1 makes a voter of m5 already"},
		{"another of the same name", membership.Spec{
			Add: []membership.Newcomer{{Name: "m7", PeerURLs: []string{url(9)}}},
		}, "job a1 adds another member called m7"},
		{"the same again", open.Spec, ""},
		{"the newcomer goes again", membership.Spec{Remove: ids{7}}, ""},
		{"somebody else", membership.Spec{Remove: ids{2}}, ""},
	} {
		got := membership.Rivals(&tc.spec, []membership.Job{open}, &membership.View{})
		if (tc.want == "") != (len(got) == 0) || (tc.want != "" && !strings.HasPrefix(got[0], tc.want)) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		ended, undone := open, open
		ended.State, undone.CancelAsked = membership.StateDone, true
		if got := membership.Rivals(&tc.spec, []membership.Job{ended, undone}, &membership.View{}); len(got) > 0 {
			t.Errorf("%s: jobs that are over: %q", tc.name, got)
		}
	}
}

func TestSpec_Unseen(t *testing.T) {
	jobs := []membership.Job{
		{ID: 1, State: membership.StateDone, Spec: membership.Spec{Remove: ids{1}}},
		{ID: 2, State: membership.StateQueued, Spec: membership.Spec{Remove: ids{2}}},
		{ID: 3, State: membership.StateRunning, Spec: membership.Spec{Remove: ids{3}}},
	}
	planned := membership.Spec{Remove: ids{4}, Expected: consensus.ConfigID{Index: 4}, After: []membership.JobID{2}}
	if got := planned.Unseen(jobs); len(got) != 1 || got[0].ID != 3 {
		t.Errorf("planned after job 2: got %+v, want job 3", got)
	}
	blind := membership.Spec{Remove: ids{4}}
	if got := blind.Unseen(jobs); len(got) > 0 {
		t.Errorf("nothing is expected: got %+v", got)
	}
	if why := membership.Since(jobs, consensus.ConfigID{Index: 4}); why != "" {
		t.Errorf("none has begun: %q", why)
	}
	jobs[0].Config, jobs[0].Final = consensus.ConfigID{Index: 4}, consensus.ConfigID{Index: 9}
	if why := membership.Since(jobs, consensus.ConfigID{Index: 4}); why != "job 1 (remove 1) is done since" {
		t.Errorf("what has changed: %q", why)
	}
}
