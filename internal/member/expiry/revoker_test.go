package expiry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/proposals"
)

// leader is a member that may lead, with a lease of ten seconds.
type leader struct {
	*expiry.Revoker
	t              *testing.T
	leads, corrupt bool
	hangs          time.Duration // for so long its store answers no read
	failed         error         // of reads
	reads          int
	readsBefore    []int         // how many reads there were before each revocation
	jumps          time.Duration // by how much the clock jumps after 250 revocations
	jumped         atomic.Int64
	mu             sync.Mutex
	revoked        []kv.LeaseRevokeOp
	begun          []time.Time   // when each was proposed
	takes          time.Duration // until it is applied; zero: a millisecond
	waiting, most  int           // revocations that are proposed and not applied
	index          consensus.Index
	machine        *apply.Machine
}

// apply executes commands.
func (l *leader) apply(t *testing.T, commands ...kv.Command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range commands {
		l.index++
		entry := consensus.Entry{Index: l.index, Term: 5, Kind: consensus.EntryCommand, Payload: commands[i].Append(nil)}
		if _, err := l.machine.Apply([]consensus.Entry{entry}); err != nil {
			t.Error(err)
		}
	}
}

// propose executes a revocation after what comes with it was proposed.
func (l *leader) propose(t *testing.T, command *kv.Command) {
	l.mu.Lock()
	l.revoked, l.begun = append(l.revoked, *command.LeaseRevoke), append(l.begun, time.Now())
	if l.readsBefore = append(l.readsBefore, l.reads); len(l.revoked) == 250 {
		l.jumped.Store(int64(l.jumps))
	}
	l.waiting++
	l.most = max(l.most, l.waiting)
	l.mu.Unlock()
	<-time.After(max(time.Millisecond, l.takes))
	l.apply(t, *command)
	l.mu.Lock()
	l.waiting--
	l.mu.Unlock()
}

func newLeader(t *testing.T) (l *leader, data *datadir.Data) {
	t.Helper()
	data = datatest.Create(t, datatest.Options(), 1)
	t.Cleanup(func() { datatest.Close(t, data) })
	var stores datadir.Stores
	stores.Set(data.Generation)
	l = &leader{t: t, machine: data.Machine}
	l.apply(t, kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 10}})
	l.Revoker = expiry.New(expiry.Options{
		Stores: &stores, Clock: l, Extend: time.Second, Logger: slog.New(slog.DiscardHandler),
		Leads:    func() bool { return l.leads },
		Corrupt:  func() bool { return l.corrupt },
		Requests: l,
	})
	return l, data
}

// Now implements env.Clock.
func (l *leader) Now() time.Time { return time.Now().Add(time.Duration(l.jumped.Load())) }

// AfterFunc implements env.Clock.
func (l *leader) AfterFunc(d time.Duration, f func()) env.Timer {
	return env.WallClock{}.AfterFunc(d, f)
}

// hang sets for how long the store answers no read.
func (l *leader) hang(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangs = d
}

// outcome is what a leader has proposed.
type outcome struct {
	revoked     []kv.LeaseRevokeOp
	begun       []time.Time
	most        int
	readsBefore []int
}

// got returns what the leader has proposed so far.
func (l *leader) got() outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return outcome{slices.Clone(l.revoked), slices.Clone(l.begun), l.most, slices.Clone(l.readsBefore)}
}

// Propose implements expiry.Requests.
func (l *leader) Propose(command *kv.Command, done proposals.Completion) (abandon func() bool, err error) {
	go func() {
		l.propose(l.t, command)
		done.Complete(kv.Result{}, nil)
	}()
	return nil, nil
}

// Read implements expiry.Requests.
func (l *leader) Read(done proposals.Completion) (abandon func() bool, err error) {
	l.mu.Lock()
	hangs, failed := l.hangs, l.failed
	l.reads++
	l.mu.Unlock()
	go func() {
		<-time.After(hangs)
		done.Complete(kv.Result{}, failed)
	}()
	return nil, nil
}

// Ensure that a leader revokes a lease after its TTL and the time without a leader, in the term in which it began to
// count, and that one that is marked corrupt revokes nothing.
func TestRevoker_Run(t *testing.T) {
	for _, corrupt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, data := newLeader(t)
			l.leads, l.corrupt = true, corrupt
			l.Lead(data.Machine, true, 5)
			early, cancel := context.WithTimeout(t.Context(), 10900*time.Millisecond)
			defer cancel()
			if err := l.Run(early); err != nil || len(l.got().revoked) != 0 {
				t.Errorf("%v, revoked early: %v", err, l.got().revoked)
			}
			late, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			err := l.Run(late)
			switch {
			case err != nil:
				t.Error(err)
			case corrupt && len(l.got().revoked) != 0:
				t.Errorf("a corrupt member revoked %v", l.got().revoked)
			case !corrupt && (len(l.got().revoked) == 0 || l.got().revoked[0] != kv.LeaseRevokeOp{ID: 7, Term: 5}):
				t.Errorf("revoked %v", l.got().revoked)
			}
		})
	}
}

// Ensure that leases which end together are revoked at the pace of etcd, few at once, and a lease with many keys alone, in two parts.
func TestRevoker_Run_piledUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, data := newLeader(t)
		for id := kv.LeaseID(100); id < 2100; id++ {
			l.apply(t, kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id, TTLSeconds: 5}})
		}
		for i := range 600 {
			l.apply(t, kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%d", i), Lease: 7}})
		}
		l.leads = true
		l.Lead(data.Machine, true, 5)
		l.Due() // tells the time
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for seconds := 6; seconds <= 12; seconds++ {
			until, stop := context.WithDeadline(ctx, begun.Add(time.Duration(seconds)*time.Second+time.Millisecond))
			before := len(l.got().revoked)
			if err := l.Run(until); err != nil {
				t.Fatal(err)
			}
			stop()
			if revoked := len(l.got().revoked) - before; revoked > 1000 {
				t.Errorf("%d leases are revoked in second %d", revoked, seconds)
			}
		}
		if left := data.Machine.Leases().Len(); left != 0 || l.got().most > 250 || len(l.got().revoked) != 2002 {
			t.Errorf("%d leases are left after %d revocations, %d at once", left, len(l.got().revoked), l.got().most)
		}
		if last := l.got().revoked[len(l.got().revoked)-1]; last.ID != 7 {
			t.Errorf("the last is %v, want the longest lease", last)
		}
	})
}

// Ensure that there is time between the parts of what ends at once, more if a part takes long, but only at first.
func TestRevoker_Run_rests(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		takes time.Duration
		begun []time.Duration
	}{
		{ms, []time.Duration{0, 4 * ms, 8 * ms, 12 * ms}},
		{10 * ms, []time.Duration{0, 40 * ms, 80 * ms, 120 * ms}},
		{100 * ms, []time.Duration{0, 200 * ms, 400 * ms, 600 * ms}},
		{400 * ms, []time.Duration{0, 500 * ms, 900 * ms, 1300 * ms}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, data := newLeader(t)
			for id := kv.LeaseID(100); id < 104; id++ { // two of them are too many keys for a part
				l.apply(t, kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id, TTLSeconds: 5}})
				for i := range 400 {
					l.apply(t, kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "%d/%d", id, i), Lease: id}})
				}
			}
			l.leads, l.takes = true, tc.takes
			l.Lead(data.Machine, true, 5)
			ctx, cancel := context.WithTimeout(t.Context(), 9900*time.Millisecond)
			defer cancel()
			if err := l.Run(ctx); err != nil || len(l.got().begun) != 4 {
				t.Fatalf("%d revocations, %v", len(l.got().begun), err)
			}
			for i, at := range l.got().begun {
				if got := at.Sub(l.got().begun[0]); got != tc.begun[i] {
					t.Errorf("revocation %d of those that take %v begins after %v, want %v", i, tc.takes, got, tc.begun[i])
				}
			}
		})
	}
}

// Ensure that no lease ends while renewals wait for a store that hangs, nor at once when it goes on: until a client could have
// renewed its lease. The clock loses all of the time for which renewals waited but the first moment.
func TestRevoker_Run_hungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, data := newLeader(t)
		l.leads = true
		l.Lead(data.Machine, true, 5)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		time.AfterFunc(8200*time.Millisecond, func() { l.hang(30 * time.Second) })
		time.AfterFunc(9*time.Second, func() { l.hang(0) })
		time.AfterFunc(38*time.Second, func() {
			if remaining, _, err := l.TimeToLive(7); err != nil || remaining != 2 {
				t.Errorf("a lease with %d s left, %v, after it had 3 s for 30 s", remaining, err)
			}
		})
		if err := l.Run(ctx); err != nil || len(l.got().begun) != 1 {
			t.Fatalf("%d revocations, %v", len(l.got().begun), err)
		}
		if ended := l.got().begun[0].Sub(begun); ended < 41500*time.Millisecond || ended > 42500*time.Millisecond {
			t.Errorf("the lease of 10 s ended %v after the begin of a term, 30 s of which nothing was applied", ended)
		}
	})
}

// Ensure that a lease which would have ended in the second that its clock runs ahead is renewed when the store goes on, by a
// renewal that waited, and by one whose batch came only then.
func TestRevoker_Renew_aheadOfHungStore(t *testing.T) {
	for _, later := range []time.Duration{0, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l, data := newLeader(t)
			l.leads = true
			l.Lead(data.Machine, true, 5) // it ends after 11 s
			time.AfterFunc(10200*time.Millisecond, func() { l.hang(30 * time.Second) })
			time.AfterFunc(10700*time.Millisecond, func() { l.hang(0) })
			ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
			defer cancel()
			time.AfterFunc(40400*time.Millisecond+later, func() {
				if renewed, err := l.Renew([]kv.LeaseID{7}); err != nil || renewed[0].Err != nil {
					t.Errorf("%v later: renewed %v, %v", later, renewed, err)
				}
			})
			if err := l.Run(ctx); err != nil || len(l.got().revoked) != 0 {
				t.Errorf("%v later: %v ended, %v", later, l.got().revoked, err)
			}
		})
	}
}

// Ensure that no lease ends while reads fail, that this is counted, and that they end when reads work again.
func TestRevoker_Run_failedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, data := newLeader(t)
		l.leads, l.failed = true, errors.New("no leader")
		l.hang(7 * time.Second)
		l.Lead(data.Machine, true, 5)
		failing, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := l.Run(failing); err != nil || len(l.got().revoked) != 0 {
			t.Errorf("%v ended while reads failed, %v", l.got().revoked, err)
		}
		if stood := data.Machine.Counts().LeasesStoodMillis.Load(); stood < 50_000 || stood > 60_000 {
			t.Errorf("the clock stood still for %d ms of a minute", stood)
		}
		synctest.Wait()
		l.mu.Lock()
		l.hangs, l.failed = 0, nil
		l.mu.Unlock()
		working, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		if err := l.Run(working); err != nil || len(l.got().revoked) != 1 {
			t.Errorf("%v ended, %v", l.got().revoked, err)
		}
	})
}

// Ensure that a process that stood still between two parts of what ends asks whether renewals can be served before it goes on.
func TestRevoker_Run_standsBetweenParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, data := newLeader(t)
		for id := kv.LeaseID(100); id < 400; id++ {
			l.apply(t, kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id, TTLSeconds: 10}})
		}
		l.leads = true
		l.Lead(data.Machine, true, 5)
		l.jumps = 30 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if err := l.Run(ctx); err != nil || len(l.got().revoked) != 301 {
			t.Fatalf("%d ended, %v", len(l.got().revoked), err)
		}
		if before, after := l.got().readsBefore[249], l.got().readsBefore[250]; after <= before {
			t.Errorf("%d reads before the process stood still, %d before it went on", before, after)
		}
	})
}

// Ensure that a lease that its client asked to renew while the store hung is renewed when it goes on, and not over.
func TestRevoker_Renew_hungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, data := newLeader(t)
		l.leads = true
		l.Lead(data.Machine, true, 5)
		l.hang(60 * time.Second)
		time.AfterFunc(time.Second, func() { l.hang(0) })
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		time.AfterFunc(60400*time.Millisecond, func() { // the renewal's own read was answered, the scan's not yet
			if renewed, err := l.Renew([]kv.LeaseID{7}); err != nil || renewed[0].Err != nil {
				t.Errorf("renewed: %v, %v", renewed, err)
			}
		})
		if err := l.Run(ctx); err != nil || len(l.got().revoked) != 0 {
			t.Errorf("%v ended, %v", l.got().revoked, err)
		}
	})
}

func TestRevoker_Renew(t *testing.T) {
	l, data := newLeader(t)
	one := []kv.LeaseID{7}
	if _, err := l.Renew(one); !errors.Is(err, expiry.ErrNotLeader) || !expiry.Elsewhere(err) {
		t.Errorf("a follower: %v", err)
	}
	l.leads = true
	if _, err := l.Renew(one); err == nil || !expiry.Elsewhere(err) {
		t.Errorf("a leader that has not begun to count: %v", err)
	}
	l.Lead(data.Machine, true, 5)
	want := []lease.Renewal{{TTLSeconds: 10}, {Err: kv.ErrLeaseNotFound}, {TTLSeconds: 10}}
	if got, err := l.Renew([]kv.LeaseID{7, 8, 7}); !slices.Equal(got, want) || err != nil {
		t.Errorf("renew: %v, %v; want %v", got, err, want)
	}
	if renewed := data.Machine.Counts().LeasesRenewed.Load(); renewed != 2 {
		t.Errorf("%d renewals are counted, want 2", renewed)
	}
	if remaining, granted, err := l.TimeToLive(7); granted != 10 || remaining > 10 || remaining < 9 || err != nil {
		t.Errorf("time to live: %d of %d, %v", remaining, granted, err)
	}
	l.Lead(data.Machine, false, 6)
	if _, err := l.Renew(one); err == nil {
		t.Error("one that leads no more renews")
	}
}
