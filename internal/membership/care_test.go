package membership_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

const (
	careStable = 5_000
	careDead   = 60_000
	careBegan  = int64(1_700_000_000_000)
)

// ward is a cluster that is cared for, looked at once a second.
type ward struct {
	*pretended
	policy membership.Policy
	jobs   []membership.Job
	memory membership.HealthHistory
	now    int64
}

func cared(t *testing.T, voters, learners int) *ward {
	return &ward{
		pretended: found(t, voters, learners), now: careBegan,
		policy: membership.Policy{Mode: membership.ModeAuto, DeadAfterMS: careDead, StableMS: careStable, MaxPerHour: 2},
	}
}

// look asks once, a second later.
func (w *ward) look() membership.Advice {
	w.now += 1000
	v := w.view()
	v.Now = w.now
	return membership.Care(&w.policy, v, w.jobs, &w.memory)
}

// anHour passes under one leader, which looks every few seconds.
func (w *ward) anHour() {
	for range 3_600 / 6 {
		w.now += 5000
		w.look()
	}
}

// settle asks until everything that is steady counts as stable.
func (w *ward) settle() membership.Advice {
	for range careStable / 1000 {
		w.look()
	}
	return w.look()
}

func (w *ward) kill(dead ...consensus.MemberID) *ward {
	w.silence(dead...)
	for _, id := range dead {
		w.seen[id].SilentMS = careDead + 1
	}
	return w
}

func (w *ward) revive(id consensus.MemberID) {
	m := w.seen[id]
	m.Active, m.CaughtUp, m.SilentMS, m.State = true, true, 0, "replicate"
}

func (w *ward) zone(zones ...string) *ward {
	for i, zone := range zones {
		w.seen[consensus.MemberID(i+1)].Zone = zone
	}
	return w
}

// accept makes a job of an advice, as the leader does.
func (w *ward) accept(a membership.Advice) *membership.Job {
	w.jobs = append(w.jobs, membership.Job{ID: a.Job, Spec: *a.Spec, State: membership.StateQueued, Created: w.now})
	w.jobs[len(w.jobs)-1].Care = membership.ByCare(&w.jobs[len(w.jobs)-1])
	return &w.jobs[len(w.jobs)-1]
}

// swap and promotion are what care may want.
func swap(out, in consensus.MemberID) *membership.Spec {
	return &membership.Spec{Kind: membership.KindReplace, Remove: ids{out}, Promote: ids{in}}
}

func promotion(in ...consensus.MemberID) *membership.Spec {
	return &membership.Spec{Kind: membership.KindChange, Promote: in}
}

func TestCare_acts(t *testing.T) {
	for _, tc := range []struct {
		name             string
		voters, learners int
		target           int
		arrange          func(*ward)
		want             *membership.Spec
		text             string
	}{
		{"all is well", 3, 1, 0, nil, nil, ""},
		{"all is well, and enough vote", 3, 1, 3, nil, nil, ""},
		{"more vote than should: that is for people", 5, 1, 3, nil, nil, ""},
		{"a voter is silent, and not for long", 3, 1, 0, func(w *ward) { w.silence(3) }, nil, ""},
		{"a dead learner is not replaced", 3, 2, 0, func(w *ward) { w.kill(4) }, nil, ""},
		{"a dead voter is swapped for the standby", 3, 1, 0, func(w *ward) { w.kill(3) }, swap(3, 4),
			"m3 has been silent for more than 60 s; m4 can take its place: `quorate member replace m3 --with m4`"},
		{"also where voters are missing", 3, 3, 5, func(w *ward) { w.kill(2) }, swap(2, 4), "m4 can take its place"},
		{"also where too many vote", 5, 1, 3, func(w *ward) { w.kill(2) }, swap(2, 6), "m6 can take its place"},
		{"the leader does not count as silent", 3, 1, 0, func(w *ward) { w.kill(3).silence(1) }, swap(3, 4), "m4 can take its place"},
		{"a dead learner does not make it unclear", 3, 2, 0, func(w *ward) { w.kill(3, 4) }, swap(3, 5), "m5 can take its place"},
		{"the standby in the zone of the dead one", 3, 3, 0, func(w *ward) { w.kill(3).zone("a", "b", "c", "d", "a", "c") },
			swap(3, 6), "m6 can take its place"},
		{"else one in a zone without a voter", 3, 3, 0, func(w *ward) { w.kill(3).zone("a", "b", "c", "a", "d", "b") },
			swap(3, 5), "m5 can take its place"},
		{"the zone of the dead one counts as one without", 3, 2, 0, func(w *ward) { w.kill(3).zone("a", "b", "c", "", "c") },
			swap(3, 5), "m5 can take its place"},
		{"else any", 3, 2, 0, func(w *ward) { w.kill(3).zone("a", "b", "c", "b", "a") }, swap(3, 4), "m4 can take its place"},
		{"one without a zone is no better", 3, 2, 0, func(w *ward) { w.kill(3).zone("a", "b", "c", "", "") }, swap(3, 4),
			"m4 can take its place"},
		{"two of one name are told apart", 3, 1, 0, func(w *ward) {
			w.kill(3)
			w.config.Members[3].Name = "m3"
		}, swap(3, 4), "`quorate member replace 3 --with 4`"},

		{"a voter is missing", 2, 1, 3, nil, promotion(3),
			"there are 2 voters, and there should be 3; m3 can vote: `quorate member promote m3`"},
		{"two are missing", 3, 2, 5, nil, promotion(4, 5), "m4 and m5 can vote: `quorate member promote m4 m5`"},
		{"the number stays odd", 2, 2, 5, nil, promotion(3), "m3 can vote"},
		{"unless it should be even", 3, 1, 4, nil, promotion(4), "m4 can vote"},
		{"on the way to an even number, too", 2, 1, 4, nil, promotion(3), "m3 can vote"},
		{"as many as are missing", 2, 3, 3, nil, promotion(3), "m3 can vote"},
		{"a zone without a voter first", 2, 3, 3, func(w *ward) { w.zone("a", "b", "a", "b", "c") }, promotion(5), "m5 can vote"},
		{"the second one in another zone than the first", 1, 3, 3, func(w *ward) { w.zone("a", "b", "b", "c") }, promotion(2, 4),
			"m2 and m4 can vote"},
		{"one that will vote by itself is not added to", 2, 2, 3, func(w *ward) { w.config.Members[2].Promote = true }, nil, ""},
		{"nor one that a job brings", 2, 2, 3, func(w *ward) { w.config.Members[2].Joining = true }, nil, ""},
		{"one that does not answer is", 2, 2, 3, func(w *ward) {
			w.config.Members[2].Promote = true
			w.silence(3)
		}, promotion(4), "m4 can vote"},
	} {
		for _, mode := range []membership.Mode{membership.ModeSuggest, membership.ModeAuto} {
			w := cared(t, tc.voters, tc.learners)
			w.policy.Voters, w.policy.Mode = tc.target, mode
			if tc.arrange != nil {
				tc.arrange(w)
			}
			got := w.settle()
			if tc.want != nil {
				tc.want.Expected = w.id
			}
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" {
				t.Errorf("%s: want -, got +\n%s%s", tc.name, diff, got.String())
			}
			if (tc.text == "") != (got.String() == "") || !strings.Contains(got.String(), tc.text) || (got.Job != 0) != (tc.want != nil) {
				t.Errorf("%s: got %q as job %v, want %q", tc.name, got.String(), got.Job, tc.text)
			}
			if got.Spec != nil && got.Spec.Validate() != nil {
				t.Errorf("%s: %v", tc.name, got.Spec.Validate())
			}
		}
		w := cared(t, tc.voters, tc.learners)
		w.policy.Voters, w.policy.Mode = tc.target, membership.ModeOff
		if tc.arrange != nil {
			tc.arrange(w)
		}
		if got := w.settle(); got != (membership.Advice{}) {
			t.Errorf("%s: care is off, and says %q", tc.name, got.String())
		}
	}
}

func TestCare_keepsStill(t *testing.T) {
	for _, tc := range []struct {
		name             string
		voters, learners int
		target           int
		arrange          func(*ward)
		want             string
	}{
		{"two are dead", 5, 1, 0, func(w *ward) { w.kill(4, 5) },
			"m4 and m5 have been silent for more than 60 s; nothing is done: m4 and m5 are silent at once, which is more likely"},
		{"one is dead and another is silent", 5, 1, 0, func(w *ward) { w.kill(4).silence(5) }, "m4 and m5 are silent at once"},
		{"the quorum is lost", 3, 1, 0, func(w *ward) { w.kill(2, 3) }, "nothing is done: the quorum is lost"},
		{"the leader is new", 3, 1, 0, func(w *ward) { w.kill(3).started = false }, "m1 has led for a moment only"},
		{"a change is under way", 3, 1, 0, func(w *ward) { w.kill(3).stage = 2 }, "another change is under way"},
		{"voters are joint", 3, 1, 0, func(w *ward) { w.kill(3).config.Outgoing = ids{1, 2} }, "another change is under way"},
		{"a job is open", 3, 1, 0, func(w *ward) {
			w.kill(3).jobs = []membership.Job{{ID: 0xa, State: membership.StateDone}, {ID: 0xb, State: membership.StateQueued}}
		}, "job b has not ended"},
		{"no learner at all", 3, 0, 0, func(w *ward) { w.kill(3) },
			"there is no standby learner to take its place: add one with `quorate member add NAME --peer-urls URL --learner`"},
		{"a learner that is to vote anyway is no standby", 3, 1, 0, func(w *ward) {
			w.kill(3).config.Members[3].Promote = true
		}, "there is no standby learner"},
		{"a learner of a job is none", 3, 1, 0, func(w *ward) { w.kill(3).config.Members[3].Joining = true },
			"there is no standby learner"},
		{"the standby lags", 3, 1, 0, func(w *ward) { w.kill(3).seen[4].CaughtUp = false },
			"m4 has not been up and caught up for 5.0 s"},
		{"the standby is silent", 3, 1, 0, func(w *ward) { w.kill(3).silence(4) }, "m4 has not been up"},
		{"the standby receives a snapshot", 3, 1, 0, func(w *ward) { w.kill(3).seen[4].State = "snapshot" }, "m4 has not been up"},
		{"the standby never started", 3, 2, 0, func(w *ward) {
			w.kill(3).seen[4].Started = false
			w.silence(5)
		}, "m4 and m5 have not been up"},

		{"no learner to fill up with", 3, 0, 5, nil, "there are 3 voters, and there should be 5; nothing is done: there is no standby " +
			"learner to vote"},
		{"one learner would make it even", 3, 1, 5, nil, "4 voters stand no more failures than 3, and there is one standby learner only"},
		{"one of one, too", 1, 1, 3, func(w *ward) { w.limit = 1 }, "2 voters stand no more failures than 1, and there is one standby " +
			"learner only: add another, after raising --max-learners"},
		{"a voter does not answer", 3, 2, 5, func(w *ward) { w.silence(2) }, "m2 does not answer, and voters are added while all do"},
		{"a job is open while voters are missing", 3, 2, 5, func(w *ward) {
			w.jobs = []membership.Job{{ID: 0xb, State: membership.StateRunning}}
		}, "job b has not ended"},
	} {
		w := cared(t, tc.voters, tc.learners)
		w.policy.Voters = tc.target
		if tc.arrange != nil {
			tc.arrange(w)
		}
		got := w.settle()
		if got.Spec != nil || got.Job != 0 || got.Held == "" || !strings.Contains(got.String(), tc.want) {
			t.Errorf("%s: got %q and %+v, want %q", tc.name, got.String(), got.Spec, tc.want)
		}
	}
}

// Ensure that a standby must be fit for long enough without a break, as one leader sees it by one clock.
func TestCare_stable(t *testing.T) {
	for _, tc := range []struct {
		name      string
		disturb   func(*ward)
		undo      func(*ward)
		wantAfter int // looks until it is trusted again
	}{
		{"it lags for a moment", func(w *ward) { w.seen[4].CaughtUp = false }, func(w *ward) { w.seen[4].CaughtUp = true }, 6},
		{"it is silent for a moment", func(w *ward) { w.seen[4].Active = false }, func(w *ward) { w.seen[4].Active = true }, 6},
		{"nothing happens", func(*ward) {}, func(*ward) {}, 1},
		{"the leader stood still", func(w *ward) { w.now += 60_000 }, func(*ward) {}, 5},
		{"the clock goes back", func(w *ward) { w.now -= 60_000 }, func(*ward) {}, 5},
		{"another one leads", func(w *ward) { w.leader = 2 }, func(*ward) {}, 5},
	} {
		w := cared(t, 3, 1).kill(3)
		if w.settle().Spec == nil {
			t.Fatalf("%s: nothing is done at all", tc.name)
		}
		tc.disturb(w)
		w.look()
		tc.undo(w)
		looks := 1
		for ; looks < 20 && w.look().Spec == nil; looks++ {
		}
		if looks != tc.wantAfter {
			t.Errorf("%s: trusted after %d looks, want %d", tc.name, looks, tc.wantAfter)
		}
	}
}

// Ensure that a member that comes back is not replaced, holds up everything for a while, and ends the job that was to replace
// it.
func TestCare_returning(t *testing.T) {
	w := cared(t, 5, 2).kill(5)
	first := w.settle()
	if first.Spec == nil {
		t.Fatalf("nothing is done: %q", first.String())
	}
	job := w.accept(first)
	if got := w.look(); !strings.Contains(got.Held, job.ID.String()+" has not ended") || got.Cancel != 0 {
		t.Errorf("while it is replaced: %+v", got)
	}
	w.revive(5)
	if got := w.look(); got.Cancel != job.ID || got.Spec != nil || !strings.Contains(got.String(), "m5 answers again while it is being") {
		t.Errorf("when it is back: %+v", got)
	}
	job.CancelAsked = true
	if got := w.look(); got.Cancel != 0 || got.Spec != nil {
		t.Errorf("asked for already: %+v", got)
	}
	job.State, job.Ended = membership.StateCancelled, w.now
	if got, want := w.look().String(), "m5 was silent for more than 60 s; nothing is done: m5 came back and may stay"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.kill(4)
	if got := w.look(); got.Spec != nil || !strings.Contains(got.Held, "m5 came back") {
		t.Errorf("another one dies at that moment: %+v", got)
	}
	if got := w.settle(); !cmp.Equal(got.Spec.Remove, ids{4}) {
		t.Errorf("when all is calm again: %+v", got)
	}
	others := membership.Job{ID: 7, State: membership.StateRunning, Spec: *swap(3, 6)}
	w.jobs = append(w.jobs, others)
	if got := w.look(); got.Cancel != 0 {
		t.Errorf("a job of somebody else is cancelled: %+v", got)
	}
}

// Ensure that two leaders make one job of what both see, that another configuration is another matter, and that what failed is
// tried again after an hour only.
func TestCare_jobs(t *testing.T) {
	w, other := cared(t, 3, 1).kill(3), cared(t, 3, 2).kill(3)
	other.leader = 2
	first, second := w.settle(), other.settle()
	if first.Job == 0 || first.Job != second.Job || !first.Spec.Same(second.Spec) {
		t.Errorf("got jobs %v and %v of %+v and %+v", first.Job, second.Job, first.Spec, second.Spec)
	}
	other.id.Index++
	if third := other.look(); third.Job == first.Job || third.Job == 0 {
		t.Errorf("another configuration: got job %v after %v", third.Job, first.Job)
	}
	job := w.accept(first)
	job.State, job.Ended, job.Message = membership.StateFailed, w.now, "the reason"
	if got := w.look(); got.Spec != nil || !strings.Contains(got.Held, "ended as failed less than an hour ago: the reason") {
		t.Errorf("tried again at once: %+v", got)
	}
	w.now += 99 * 3_600_000 // the clock was set
	if got := w.settle(); got.Spec != nil {
		t.Errorf("tried again because the clock was set: %+v", got)
	}
	w.anHour()
	if got := w.settle(); got.Spec == nil || got.Job == first.Job {
		t.Errorf("not tried again: %+v", got)
	}
}

// Ensure that the changes of an hour are counted, whichever member led, and those of operators are not.
func TestCare_budget(t *testing.T) {
	w := cared(t, 3, 1).kill(3)
	for range 2 {
		a := w.settle()
		if a.Spec == nil {
			t.Fatalf("within the budget: %q", a.String())
		}
		job := w.accept(a)
		job.State, job.Ended = membership.StateDone, w.now
		job.Spec.Expected.Index += 100 // as where a job that it waited for has changed the configuration
		w.id.Index++
	}
	w.jobs = append(w.jobs, membership.Job{ID: 9, State: membership.StateDone, Created: w.now, Spec: *swap(3, 4)})
	if got := w.look(); got.Spec != nil || !strings.Contains(got.Held, "2 automatic changes were begun within an hour") {
		t.Errorf("beyond the budget: %+v", got)
	}
	w.policy.MaxPerHour = 3
	if got := w.look(); got.Spec == nil {
		t.Errorf("a larger budget: %+v", got)
	}
	w.policy.MaxPerHour = 0
	if got := w.look(); got.Spec == nil {
		t.Errorf("no bound: %+v", got)
	}
	w.policy.MaxPerHour = 2
	w.anHour()
	if got := w.settle(); got.Spec == nil {
		t.Errorf("an hour later: %+v", got)
	}
}

// Ensure that a leader whose clock is hours ahead of that of the one before, or behind it, neither forgets what was begun a
// moment ago nor counts it for longer than an hour of its own.
func TestCare_clocksDiffer(t *testing.T) {
	for _, off := range []int64{-48, -2, 2, 48} {
		w := cared(t, 3, 1).kill(3)
		for range 2 {
			job := w.accept(w.settle())
			job.State, job.Ended = membership.StateDone, w.now
			w.id.Index++
		}
		w.memory, w.now = membership.HealthHistory{}, w.now+off*3_600_000 // the next leader
		if got := w.settle(); got.Spec != nil || !strings.Contains(got.Held, "2 automatic changes were begun within an hour") {
			t.Errorf("its clock is %d hours ahead: %+v", off, got)
		}
		w.anHour()
		if got := w.settle(); got.Spec == nil {
			t.Errorf("its clock is %d hours ahead, and an hour has passed: %+v", off, got)
		}
	}
}

// Ensure that what care wants, the leader does: for every number of voters, the job ends and the cluster stands as many
// failures as before the first.
func TestCare_carriedOut(t *testing.T) {
	for voters := 3; voters <= 7; voters++ {
		w := cared(t, voters, 1)
		out, in := consensus.MemberID(voters), consensus.MemberID(voters+1)
		w.kill(out)
		a := w.settle()
		if a.Spec == nil {
			t.Fatalf("%d voters: %q", voters, a.String())
		}
		got := w.run(w.accept(a), nil)
		if got.End != membership.StateDone || w.config.Contains(out) || !w.config.IsVoter(in) || len(w.config.Voters) != voters {
			t.Errorf("%d voters: got %+v in %+v", voters, got, w.config)
		}
		if unfulfilled := w.fulfilled(a.Spec); unfulfilled != "" {
			t.Errorf("%d voters: %s", voters, unfulfilled)
		}
	}
}

func TestDraft_zones(t *testing.T) {
	for _, tc := range []struct {
		name  string
		zones []string
		spec  *membership.Spec
		want  string
	}{
		{"a shared zone", []string{"r1", "r2", "r7", "r7"}, swap(2, 4), "m4 shares zone r7 with m3"},
		{"the zone of who goes", []string{"r1", "r2", "r7", "r7"}, swap(3, 4), ""},
		{"two of them", []string{"r7", "r2", "r7", "r7"}, swap(2, 4), "m4 shares zone r7 with m1 and m3"},
		{"no zones", []string{"", "", "", ""}, swap(2, 4), ""},
		{"voters that are there already", []string{"r1", "r1", "r1", "r2"}, swap(2, 4), ""},
	} {
		w := cared(t, 3, 1).zone(tc.zones...)
		p := membership.Draft(tc.spec, w.view())
		got := ""
		for _, warning := range p.Warnings {
			if strings.Contains(warning, "zone") {
				got += warning
			}
		}
		if got != tc.want || len(p.Blockers) > 0 {
			t.Errorf("%s: got %q and %v, want %q", tc.name, got, p.Blockers, tc.want)
		}
	}
}
