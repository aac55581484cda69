package epoch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/epoch"
)

const timeout = time.Second // of elections

func claim(id consensus.MemberID, number uint64) identity.Claim {
	return identity.Claim{Cluster: 1, Member: id, Epoch: consensus.Epoch{Number: number}, Life: consensus.Life{Boots: 1}}
}

func TestTracker_State(t *testing.T) {
	w := epoch.NewTracker(claim(1, 1), identity.Rules{}, timeout)
	expect := func(what string, now time.Duration, want identity.EpochState) {
		t.Helper()
		if got := w.State(now); got != want {
			t.Errorf("%s: got %d, want %d", what, got, want)
		}
	}
	expect("before it has asked", 0, identity.Looking)
	w.Ask()
	w.Asked()
	expect("nobody is of another epoch", 0, identity.Sound)
	w.Led(time.Minute)
	for name, c := range map[string]identity.Claim{
		"its own epoch": claim(2, 1), "another cluster": {Cluster: 2, Member: 2, Epoch: consensus.Epoch{Number: 2}, Life: consensus.Life{Boots: 1}},
		"no member yet": {Cluster: 1, Member: 2, Epoch: consensus.Epoch{Number: 2}},
	} {
		if w.Meet(c, identity.Dialled) || w.MetAny() {
			t.Errorf("a claim of %s counts", name)
		}
	}
	if !w.Meet(claim(2, 2), identity.Dialled) || w.Meet(claim(2, 2), identity.Certified) {
		t.Error("a member of a newer epoch is news once")
	}
	expect("it had a leader a moment ago", time.Minute+5*timeout-1, identity.Contested)
	expect("it has had none for five election timeouts", time.Minute+5*timeout, identity.Superseded)
	w.Led(2 * time.Minute)
	expect("it hears a leader of its epoch", 2*time.Minute, identity.Contested)
	expect("it has lost that leader", 3*time.Minute, identity.Looking)
	w.Ask()
	w.Meet(claim(2, 2), identity.Dialled)
	w.Asked()
	expect("it looked again, and the newer epoch is there still", 3*time.Minute, identity.Superseded)
	w.Led(4 * time.Minute)
	w.Ask()
	w.Asked()
	expect("it looked again, and nobody was there", 5*time.Minute, identity.Contested)
}

// Ensure that a member which calls before its name is known is called by its name after that.
func TestTracker_Name(t *testing.T) {
	w := epoch.NewTracker(claim(1, 1), identity.Rules{}, timeout)
	w.Meet(claim(2, 2), identity.Dialled)
	w.Name(2, "two")
	w.Name(3, "three")
	w.Meet(claim(3, 2), identity.Dialled)
	if met, alarms := w.Met(); len(met) != 2 || met[0].Name != "two" || met[1].Name != "three" || !strings.HasPrefix(alarms[0], "two (") {
		t.Errorf("it met %+v, and says %q", met, alarms)
	}
}

func TestTracker_Asked_pausesLonger(t *testing.T) {
	w := epoch.NewTracker(claim(1, 1), identity.Rules{}, timeout)
	for i, want := range []time.Duration{1, 2, 4, 8, 15, 15} {
		if got := w.Asked(); got != want*time.Second {
			t.Errorf("after round %d: got %v, want %ds", i+1, got, want)
		}
	}
}

// Ensure that a member that was recovered without finds out by asking those whom it is not connected to, says so, and
// serves again once it hears a leader of its own epoch.
func TestMonitor_Run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := epoch.New(epoch.Options{
			Own: claim(1, 1), ElectionTimeout: timeout, Clock: env.WallClock{}, Logger: slog.New(slog.DiscardHandler),
			Unconnected: func() []consensus.Member {
				return []consensus.Member{{ID: 2, Name: "two", PeerURLs: []string{"http://silent", "http://two"}}}
			},
			Name:    func(consensus.MemberID) string { return "" },
			Dropped: func() ([]consensus.Member, error) { return nil, errors.New("damaged") },
			Greet: func(_ context.Context, url string) (identity.Greeting, error) {
				if url != "http://two" {
					return identity.Greeting{}, errors.New("nobody answers")
				}
				return identity.Greeting{Claim: claim(2, 2), Stage: identity.Founded}, nil
			},
		})
		if m.Update(false) != identity.Looking || m.Superseded() != nil {
			t.Error("it has asked nobody yet")
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Run(ctx) }()
		synctest.Wait()
		var superseded *epoch.SupersededError
		if m.Update(false) != identity.Superseded || !errors.As(m.Superseded(), &superseded) || len(m.Alarms()) != 1 {
			t.Errorf("it does not know that it was superseded: %v, %q", m.Superseded(), m.Alarms())
		}
		if m.Update(true) != identity.Contested || m.Superseded() != nil {
			t.Errorf("it hears a leader: %v", m.Superseded())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Ensure that an alarm has the name that is known when it is logged: a member of another epoch calls at any moment, and
// the next alarm about it is a minute away.
func TestMonitor_nameOfCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		name := ""
		m := epoch.New(epoch.Options{
			Own: claim(1, 1), ElectionTimeout: timeout, Clock: env.WallClock{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Unconnected: func() []consensus.Member { return []consensus.Member{{ID: 2}} },
			Name:        func(consensus.MemberID) string { return name },
			Dropped:     func() ([]consensus.Member, error) { return nil, nil },
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Run(ctx) }()
		synctest.Wait()
		name = "two"
		m.Meet(claim(2, 2), identity.Certified)
		synctest.Wait()
		if !strings.Contains(log.String(), "two (") {
			t.Errorf("it does not say who called: %s", log.String())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Ensure that a caller that nothing proves to be a member changes nothing, however often it calls: it only makes this member ask
// those whom it names, where the configuration has them, and what these say counts.
func TestMonitor_Meet_hearsay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked, truth := 0, claim(2, 1)
		m := epoch.New(epoch.Options{
			Own: claim(1, 1), ElectionTimeout: timeout, Clock: env.WallClock{}, Logger: slog.New(slog.DiscardHandler),
			Unconnected: func() []consensus.Member { return []consensus.Member{{ID: 2, PeerURLs: []string{"http://two"}}} },
			Name:        func(consensus.MemberID) string { return "" },
			Dropped:     func() ([]consensus.Member, error) { return nil, nil },
			Greet: func(context.Context, string) (identity.Greeting, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return identity.Greeting{Claim: truth, Stage: identity.Founded}, nil
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Run(ctx) }()
		synctest.Wait()
		for id := range consensus.MemberID(500) {
			m.Meet(claim(id+1000, 9), identity.Said)
			m.Meet(claim(2, 9), identity.Said)
			synctest.Wait()
		}
		if m.Update(false) != identity.Sound || len(m.Alarms()) > 0 {
			t.Errorf("an unknown caller is believed: %v, %q", m.State(), m.Alarms())
		}
		mu.Lock()
		if asked != 2 {
			t.Errorf("asked %d times in one moment, want once at the start, and once because of the caller", asked)
		}
		truth = claim(2, 9)
		mu.Unlock()
		<-time.After(2 * timeout)
		m.Meet(claim(2, 9), identity.Said)
		synctest.Wait()
		if m.Update(false) != identity.Superseded {
			t.Errorf("what the named member says at its own address does not count: %v", m.State())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
