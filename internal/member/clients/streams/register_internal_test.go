package streams

import (
	"errors"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/admission"
)

// laterClock calls what is due when the test says so.
type laterClock struct {
	env.WallClock
	due []func()
}

func (c *laterClock) AfterFunc(_ time.Duration, f func()) env.Timer {
	c.due = append(c.due, f)
	return time.NewTimer(0)
}

func (c *laterClock) pass() {
	due := c.due
	c.due = nil
	for _, f := range due {
		f()
	}
}

// Ensure that a client counts until its sessions would be gone, that it may come back before, and that nothing is kept
// of those that are gone.
func TestRegister_enter(t *testing.T) {
	clock := &laterClock{}
	var r register
	r.init(clock, nil)
	here, there := admission.Caller{Host: "10.0.0.1", Address: "10.0.0.1:1"}, admission.Caller{Host: "10.0.0.1", Address: "10.0.0.1:2"}
	var leave []func()
	for id := consensus.MemberID(1); id <= maxConnectionClients; id++ {
		one, err := r.enter(id, here)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, one)
	}
	if _, err := r.enter(1000, here); !errors.Is(err, errTooManyClients) {
		t.Errorf("one more on the connection: got %v", err)
	}
	other, err := r.enter(1000, there)
	if err != nil {
		t.Errorf("on another connection: got %v", err)
	}
	leave[0]()
	if _, err := r.enter(1001, here); err == nil {
		t.Error("a client that left a moment ago does not count any more")
	}
	again, err := r.enter(1, there)
	if err != nil {
		t.Fatal(err)
	}
	clock.pass()
	if n, refused := r.counts(); n != maxConnectionClients+1 || refused != 2 {
		t.Errorf("%d clients, %d refused: the one that came back is forgotten", n, refused)
	}
	for _, f := range append(leave[1:], other, again) {
		f()
	}
	clock.pass()
	n, _ := r.counts()
	hosts, _ := r.hosts.Counts()
	if connections, _ := r.connections.Counts(); n != 0 || hosts != 0 || connections != 0 {
		t.Errorf("%d clients, %d of hosts, %d of connections are left", n, hosts, connections)
	}
	for range maxClientStreams {
		if _, err := r.enter(1, here); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.enter(1, here); !errors.Is(err, errTooManyClients) {
		t.Errorf("one more stream of a client: got %v", err)
	}
}

// Ensure that clients of one address are known as such as long as they count.
func TestRegister_neighboursOf(t *testing.T) {
	clock := &laterClock{}
	var r register
	r.init(clock, nil)
	for id, host := range map[consensus.MemberID]string{1: "10.0.0.1", 2: "10.0.0.1", 3: "10.0.0.2"} {
		leave, err := r.enter(id, admission.Caller{Host: host, Address: host + ":1"})
		if err != nil {
			t.Fatal(err)
		}
		if id == 2 {
			defer func() {
				if leave(); !r.neighboursOf(1)(2) {
					t.Error("a client that left a moment ago is forgotten")
				}
				if clock.pass(); r.neighboursOf(1)(2) {
					t.Error("a client that has left is a neighbour")
				}
			}()
		}
	}
	if near := r.neighboursOf(1); !near(2) || near(3) || near(4) || r.neighboursOf(4)(1) {
		t.Error("1 and 2 are of one host, 3 is of another one, and 4 is unknown")
	}
}

// Ensure that a client that comes and goes all the time makes one timer, and counts until it has stayed away.
func TestRegister_leave_oneTimer(t *testing.T) {
	clock := &laterClock{}
	var r register
	r.init(clock, nil)
	r.keepFor = time.Minute
	for range 100 {
		leave, err := r.enter(1, admission.Caller{Host: "10.0.0.1", Address: "10.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	if len(clock.due) != 1 {
		t.Errorf("a client that came and went made %d timers", len(clock.due))
	}
	if clock.pass(); len(clock.due) != 1 {
		t.Error("a client that left a moment ago is not looked at again")
	}
	if n, _ := r.counts(); n != 1 {
		t.Error("a client that left a moment ago is forgotten")
	}
	r.keepFor = 0
	clock.pass()
	if n, _ := r.counts(); n != 0 || len(clock.due) != 0 {
		t.Errorf("%d clients are known, and %d timers run", n, len(clock.due))
	}
}
