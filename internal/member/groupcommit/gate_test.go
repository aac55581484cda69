package groupcommit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/member/groupcommit"
)

const window = 4 * time.Millisecond

// leader is a leader whose batches take a millisecond, and which looks at its gate whenever something comes.
type leader struct {
	gate    groupcommit.Gate
	arrived []time.Duration // of those that wait
	running []run
	waits   []time.Duration // of those that were written
	batches int
}

type run struct {
	until     time.Duration
	proposals int
}

var epoch = time.Unix(1_000_000, 0)

func (l *leader) look(now time.Duration) {
	l.running = slices.DeleteFunc(l.running, func(r run) bool { return r.until <= now })
	running := 0
	for _, r := range l.running {
		running += r.proposals
	}
	if !l.gate.Pass(epoch.Add(now), len(l.arrived), running) {
		return
	}
	l.running = append(l.running, run{now + time.Millisecond, len(l.arrived)})
	for _, at := range l.arrived {
		l.waits = append(l.waits, now-at)
	}
	l.batches++
	l.arrived = nil
}

// open lets proposals come at even times, whatever becomes of them.
func (l *leader) open(every, until time.Duration) {
	for now := time.Duration(0); now < until; now += 10 * time.Microsecond {
		if now%every == 0 {
			l.arrived = append(l.arrived, now)
		}
		l.look(now)
	}
}

// closed lets clients propose again a little after each answer.
func (l *leader) closed(clients int, until time.Duration) (proposals int) {
	due := make([]time.Duration, clients)
	for i := range due {
		due[i] = time.Duration(i) * 150 * time.Microsecond
	}
	for now := time.Duration(0); now < until; now += 10 * time.Microsecond {
		came := 0
		for i := range due {
			if due[i] == now {
				due[i] = -1
				l.arrived = append(l.arrived, now)
				came++
			}
		}
		proposals += came
		before := l.batches
		l.look(now)
		if l.batches > before {
			for i := range due {
				if due[i] < 0 { // it waited, or runs; those that run have a time already
					due[i] = now + time.Millisecond + 200*time.Microsecond + time.Duration(i)*10*time.Microsecond
				}
			}
		}
	}
	return proposals
}

// Ensure that proposals which come often, and each by itself, are written together, and that none waits longer than the window.
func TestGate_often(t *testing.T) {
	l := leader{gate: groupcommit.New(window)}
	l.open(500*time.Microsecond, time.Second)
	if n := len(l.waits) / l.batches; n < 6 {
		t.Errorf("%d proposals in %d batches", len(l.waits), l.batches)
	}
	if longest := slices.Max(l.waits); longest > window {
		t.Errorf("one waited for %v", longest)
	}
}

// Ensure that proposals which come rarely do not wait: to wait would save nothing.
func TestGate_rarely(t *testing.T) {
	l := leader{gate: groupcommit.New(window)}
	l.open(5*time.Millisecond, time.Second)
	if longest := slices.Max(l.waits); longest > 0 || l.batches != len(l.waits) {
		t.Errorf("one waited for %v; %d proposals in %d batches", longest, len(l.waits), l.batches)
	}
}

// Ensure that clients who wait for each answer before they go on, be they few or many, get about as much done as without a window.
func TestGate_closed(t *testing.T) {
	for _, clients := range []int{1, 2, 3, 8, 64} {
		with, without := leader{gate: groupcommit.New(window)}, leader{}
		got, most := with.closed(clients, time.Second), without.closed(clients, time.Second)
		if got < most*3/4 {
			t.Errorf("%d clients: %d proposals instead of %d", clients, got, most)
		}
		if clients > 2 && with.batches > without.batches {
			t.Errorf("%d clients: %d batches instead of %d", clients, with.batches, without.batches)
		}
	}
}

// Ensure that one who writes without pause is hardly kept waiting by others who write now and then.
func TestGate_oneAndOthers(t *testing.T) {
	l := leader{gate: groupcommit.New(window)}
	due, others, done := time.Duration(0), time.Duration(0), 0
	for now := time.Duration(0); now < time.Second; now += 10 * time.Microsecond {
		if now == others {
			l.arrived, others = append(l.arrived, now), others+50*time.Millisecond
		}
		if now == due {
			l.arrived, due, done = append(l.arrived, now), -1, done+1
		}
		before := l.batches
		if l.look(now); l.batches > before && due < 0 {
			due = now + 1200*time.Microsecond
		}
	}
	if done < 700 { // 833 alone
		t.Errorf("%d proposals", done)
	}
}

// Ensure that a clock that is set back, or far forward, keeps no proposal waiting for longer than the window.
func TestGate_clock(t *testing.T) {
	l := leader{gate: groupcommit.New(window)}
	l.open(500*time.Microsecond, 100*time.Millisecond)
	if !l.gate.Pass(epoch.Add(-time.Hour), 1, 0) {
		t.Error("waits for the time that was")
	}
	if !l.gate.Pass(epoch.Add(time.Hour), 1, 0) {
		t.Error("waits after an hour")
	}
	if due := l.gate.Deadline(); due.Sub(epoch.Add(time.Hour)) > window {
		t.Errorf("due %v", due)
	}
}

// Ensure that without a window nothing waits, and that a batch of nothing does not begin.
func TestGate_none(t *testing.T) {
	for _, none := range []time.Duration{0, -time.Second} {
		gate := groupcommit.New(none)
		for i := range 100 {
			if gate.Holds() || !gate.Pass(epoch.Add(time.Duration(i)), 1, i) {
				t.Fatal("waits")
			}
		}
		if gate.Pass(epoch, 0, 5) {
			t.Error("a batch of nothing")
		}
	}
}
