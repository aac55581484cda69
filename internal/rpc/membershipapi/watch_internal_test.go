package membershipapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/apply/applytest"
	"github.com/quorate/quorate/internal/membership"
)

// fakeCluster is a member and the leader that it asks, in a bubble of time. Its view counts the questions.
type fakeCluster struct {
	Member
	Cluster
	machine *apply.Machine

	mu     sync.Mutex
	leader consensus.MemberID
	view   membership.View
	jobs   []membership.Job
	asked  int
	silent bool // the leader does not answer
	err    error

	leaderNews, configNews, jobsNews chan struct{}
}

func threeVoters() consensus.Config {
	return consensus.Config{
		Voters: []consensus.MemberID{1, 2, 3},
		Members: []consensus.Member{
			{ID: 1, Name: "one", PeerURLs: []string{"http://a:1"}}, {ID: 2, PeerURLs: []string{"http://a:2"}},
			{ID: 3, PeerURLs: []string{"http://a:3"}},
		},
	}
}

func threeMembers() []membership.MemberView {
	return []membership.MemberView{
		{ID: 1, Name: "one", Active: true, CaughtUp: true, Match: 100},
		{ID: 2, Name: "two", Active: true, CaughtUp: true, Match: 90, State: "replicate"},
		{ID: 3, Name: "three", Match: 10, State: "probe", SilentMS: 4000},
	}
}

// newMachine makes a state machine outside of any bubble: its store has goroutines that outlive a test's.
func newMachine(t *testing.T) *apply.Machine {
	t.Helper()
	return applytest.Open(t, 0xc1, threeVoters())
}

func newFakeCluster(machine *apply.Machine) *fakeCluster {
	f := &fakeCluster{
		machine: machine, leader: 1,
		view: membership.View{
			Leader: 1, Config: threeVoters(), ID: consensus.ConfigID{Index: 5, Term: 2}, Settled: true, Last: 100,
			Members: threeMembers(),
		},
		leaderNews: make(chan struct{}), configNews: make(chan struct{}), jobsNews: make(chan struct{}),
	}
	return f
}

func (f *fakeCluster) ID() consensus.MemberID            { return 2 }
func (f *fakeCluster) EpochName() string                 { return "0" }
func (f *fakeCluster) Term() consensus.Term              { return 3 }
func (f *fakeCluster) Machine() (*apply.Machine, func()) { return f.machine, func() {} }
func (f *fakeCluster) Leader() consensus.MemberID {
	return locked(f, func() consensus.MemberID { return f.leader })
}
func (f *fakeCluster) Jobs() []membership.Job {
	return locked(f, func() []membership.Job { return f.jobs })
}
func (f *fakeCluster) LeaderChanged() <-chan struct{} {
	return locked(f, func() chan struct{} { return f.leaderNews })
}
func (f *fakeCluster) ConfigChanged() <-chan struct{} {
	return locked(f, func() chan struct{} { return f.configNews })
}
func (f *fakeCluster) JobsChanged() <-chan struct{} {
	return locked(f, func() chan struct{} { return f.jobsNews })
}
func (f *fakeCluster) questions() int { return locked(f, func() int { return f.asked }) }
func (f *fakeCluster) change(what func(), news *chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	if news != nil {
		close(*news)
		*news = make(chan struct{})
	}
}

func locked[T any](f *fakeCluster, get func() T) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return get()
}

func (f *fakeCluster) Status() raft.Status {
	return raft.Status{
		ID: 2, Config: threeVoters(), ConfigID: consensus.ConfigID{Index: 5, Term: 2}, ConfigSettled: true, LastIndex: 95,
	}
}

func (f *fakeCluster) DescribeCluster(ctx context.Context) (membership.View, consensus.Term, error) {
	f.mu.Lock()
	f.asked++
	view, err, silent := f.view, f.err, f.silent
	view.Members = slices.Clone(view.Members)
	f.mu.Unlock()
	if silent {
		<-ctx.Done()
		return membership.View{}, 0, ctx.Err()
	}
	return view, 3, err
}

func (f *fakeCluster) service() *Service {
	return New(Options{ClusterID: 0xc1, Member: f, Cluster: f, Clock: env.WallClock{}})
}

// watching is a stream that keeps what it is told.
type watching struct {
	grpc.ServerStream
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan error
	began  time.Time

	mu     sync.Mutex
	events []*quoratepb.Event
	times  []time.Duration // since the stream began
}

func (w *watching) Context() context.Context { return w.ctx }

func (w *watching) Send(event *quoratepb.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.times = append(w.events, event), append(w.times, time.Since(w.began))
	return nil
}

func watchFrom(m *Service, interval time.Duration) *watching {
	w := &watching{ended: make(chan error, 1), began: time.Now()}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go func() {
		w.ended <- m.Watch(&quoratepb.WatchRequest{IntervalMs: uint32(interval.Milliseconds())}, w)
	}()
	return w
}

// told returns what came since the last call, once nothing more comes without time passing.
func (w *watching) told() []*quoratepb.Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

func (w *watching) end(t *testing.T) {
	t.Helper()
	w.cancel()
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended with %v, want %v", err, context.Canceled)
	}
}

func kinds(events []*quoratepb.Event) string {
	text := ""
	for _, event := range events {
		text += fmt.Sprintf("%v ", event.Kind)
	}
	return text
}

// elapse lets time go by.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestMembership_Watch_changesAtOnce(t *testing.T) {
	machine := newMachine(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(machine)
		w := watchFrom(f.service(), time.Hour)
		defer w.end(t)
		first := w.told()
		if len(first) != 1 || first[0].Kind != quoratepb.Event_KIND_STATE || first[0].Cluster.Leader != 1 ||
			len(first[0].Cluster.Members) != 3 || first[0].Cluster.Members[1].Lag != 10 {
			t.Fatalf("first: got %v, want the state as the leader sees it", first)
		}
		f.change(func() { f.view.ID.Index = 9 }, &f.configNews)
		if got := w.told(); len(got) != 1 || got[0].Kind != quoratepb.Event_KIND_CONFIG || got[0].Cluster.Config.Index != 9 {
			t.Errorf("another configuration: got %v, want it in one event", got)
		}
		f.change(func() { f.view.Settled = false }, &f.configNews)
		if got := kinds(w.told()); got != "KIND_CONFIG " {
			t.Errorf("a configuration that is not settled any more: got %s, want one KIND_CONFIG", got)
		}
		f.change(func() {
			f.jobs = []membership.Job{{ID: 7, State: membership.StateDone}, {ID: 8, State: membership.StateQueued}}
		}, &f.jobsNews)
		if got := w.told(); len(got) != 1 || got[0].Kind != quoratepb.Event_KIND_JOB || len(got[0].Jobs) != 2 {
			t.Errorf("two jobs: got %v, want both", got)
		}
		f.change(func() {
			f.jobs = []membership.Job{{ID: 7, State: membership.StateDone}, {ID: 8, State: membership.StateRunning}}
		}, &f.jobsNews)
		if got := w.told(); len(got) != 1 || len(got[0].Jobs) != 1 || got[0].Jobs[0].Id != 8 || got[0].Jobs[0].State != "running" {
			t.Errorf("one of two jobs: got %v, want that one", got)
		}
		f.change(func() { f.leader = consensus.NoMember }, &f.leaderNews)
		if got := w.told(); len(got) == 0 || got[len(got)-1].Kind != quoratepb.Event_KIND_LEADER ||
			got[len(got)-1].Cluster.Leader != 0 || got[len(got)-1].Cluster.Members[0].Name != "one" {
			t.Errorf("no leader: got %v, want an event with what this member knows", got)
		}
		f.change(func() { f.leader, f.view.Leader = 3, 3 }, &f.leaderNews)
		if got := w.told(); len(got) == 0 || got[len(got)-1].Kind != quoratepb.Event_KIND_LEADER || got[len(got)-1].Cluster.Leader != 3 {
			t.Errorf("a new leader: got %v, want it", got)
		}
		elapse(time.Minute)
		if got := w.told(); len(got) != 0 {
			t.Errorf("nothing happened: got %v", got)
		}
	})
}

func TestMembership_Watch_progressIsPaced(t *testing.T) {
	machine := newMachine(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(machine)
		w := watchFrom(f.service(), 0)
		defer w.end(t)
		w.told()
		const for10s = 10 * time.Second
		for passed := time.Duration(0); passed < for10s; passed += 50 * time.Millisecond {
			f.change(func() { f.view.Last++ }, nil)
			elapse(50 * time.Millisecond)
		}
		got := w.told()
		if len(got) < 17 || len(got) > 20 {
			t.Errorf("got %d events in %v, want about two a second: %s", len(got), for10s, kinds(got))
		}
		for i := 1; i < len(w.times); i++ {
			if gap := w.times[i] - w.times[i-1]; gap < defaultWatchInterval {
				t.Errorf("event %d came %v after the one before, want %v at least", i, gap, defaultWatchInterval)
			}
		}
		elapse(time.Second)
		w.told() // what was moved last
		for _, row := range []struct {
			silent int64
			want   string
		}{{4999, ""}, {5000, "KIND_PROGRESS "}, {9999, "KIND_PROGRESS "}, {19_000, "KIND_PROGRESS "}, {19_999, ""},
			{60_000, "KIND_PROGRESS "}, {119_999, ""}, {120_000, "KIND_PROGRESS "}} {
			f.change(func() { f.view.Members[2].SilentMS = row.silent }, nil)
			elapse(time.Minute)
			if got := kinds(w.told()); got != row.want {
				t.Errorf("somebody is silent for %d ms: got %q, want %q", row.silent, got, row.want)
			}
		}
	})
}

// However many watch, the leader is asked once per interval of the least patient; when no client watches, not at all.
func TestMembership_Watch_manyAskOnce(t *testing.T) {
	machine := newMachine(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(machine)
		m := f.service()
		var all []*watching
		for range 200 {
			all = append(all, watchFrom(m, time.Second))
		}
		elapse(10 * time.Second)
		if n := f.questions(); n < 10 || n > 12 {
			t.Errorf("200 watchers asked %d questions in 10 s, want about 10", n)
		}
		before := f.questions()
		all = append(all, watchFrom(m, time.Millisecond)) // as soon as may be
		elapse(10 * time.Second)
		if n := f.questions() - before; n < 95 || n > 102 {
			t.Errorf("with one that wants 100 ms: %d questions in 10 s, want about 100", n)
		}
		for _, w := range all {
			if got := kinds(w.told()); got != "KIND_STATE " {
				t.Fatalf("a watcher was told %s, want the state", got)
			}
			w.end(t)
		}
		before = f.questions()
		elapse(time.Minute)
		if n := f.questions(); n != before {
			t.Errorf("nobody watches: %d questions, want none", n-before)
		}
		again := watchFrom(m, time.Second)
		if got := kinds(again.told()); got != "KIND_STATE " {
			t.Errorf("who comes later: got %s, want the state", got)
		}
		again.end(t)
	})
}

func TestMembership_Watch_leaderDoesNotAnswer(t *testing.T) {
	machine := newMachine(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(machine)
		f.silent = true
		w := watchFrom(f.service(), time.Second)
		defer w.end(t)
		if got := w.told(); len(got) != 0 {
			t.Errorf("before the answer: got %v, want nothing yet", got)
		}
		elapse(describeTimeout)
		got := w.told()
		if len(got) != 1 || got[0].Kind != quoratepb.Event_KIND_STATE || got[0].Cluster.Leader != 1 ||
			got[0].Cluster.LastIndex != 95 || len(got[0].Cluster.Members) != 3 {
			t.Fatalf("after a while: got %v, want what this member knows", got)
		}
		elapse(describeTimeout / 2) // another question is on its way
		f.change(func() { f.leader = consensus.NoMember }, &f.leaderNews)
		if got := kinds(w.told()); got != "KIND_LEADER " {
			t.Errorf("the leader is lost meanwhile: got %s, want to hear it at once", got)
		}
		f.change(func() { f.leader, f.silent, f.err = 1, false, errors.New("not ready") }, &f.leaderNews)
		if got := w.told(); len(got) != 1 || got[0].Cluster.Leader != 1 || got[0].Cluster.LastIndex != 95 {
			t.Errorf("a leader that refuses: got %v, want that it is there", got)
		}
	})
}

// A change that its leader knows to be decided is told as such before the row of its job says so, and not by a member that only
// guesses, without a leader.
func TestMembership_Watch_decided(t *testing.T) {
	machine := newMachine(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(machine)
		f.jobs = []membership.Job{{ID: 7, State: membership.StateRunning, Phase: membership.PhaseSwap,
			Spec: membership.Spec{Remove: []consensus.MemberID{3}}}}
		w := watchFrom(f.service(), time.Hour)
		defer w.end(t)
		if first := w.told(); len(first) != 1 || first[0].Jobs[0].Phase != "swap" {
			t.Fatalf("first: got %v, want the job at swap", first)
		}
		f.change(func() {
			f.view.Config.Voters, f.view.Protocol = []consensus.MemberID{1, 2}, consensus.ProtocolJointEarly
			f.view.Settled, f.view.Undecided = false, true
		}, &f.configNews)
		if got := w.told(); kinds(got) != "KIND_CONFIG KIND_JOB " || got[1].Jobs[0].Phase != "decided" {
			t.Errorf("C(new) is logged: got %v, want that the change is decided", got)
		}
		f.change(func() { f.leader = consensus.NoMember }, &f.leaderNews)
		if got := w.told(); len(got) == 0 || len(got[len(got)-1].Jobs) != 1 || got[len(got)-1].Jobs[0].Phase != "swap" {
			t.Errorf("no leader: got %v, want the job as its row has it", got)
		}
	})
}
