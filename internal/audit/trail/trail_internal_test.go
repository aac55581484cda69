package trail

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/env"
)

// gate is a Port that hangs, or fails, until it is opened.
type gate struct {
	mu    sync.Mutex
	open  chan struct{}
	fails error
	lines []byte
}

func (g *gate) Write(lines []byte) (int, error) {
	g.mu.Lock()
	open, fails := g.open, g.fails
	g.mu.Unlock()
	if open != nil {
		<-open
	}
	if fails != nil {
		return 0, fails
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, lines...)
	return len(lines), nil
}

func (g *gate) set(open chan struct{}, fails error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.fails = open, fails
}

const deadline = 5 * time.Second

func newTrail(port Port, required bool, bytes int64) (*Trail, *audit.Policy) {
	policy, _ := audit.Parse([]byte(`{"rules": [{"level": "none", "operations": ["range"]}, {"level": "metadata"}]}`))
	return New(Options{Member: 1, Bytes: bytes, Deadline: deadline, Exempt: "root", Clock: env.WallClock{},
		Logger: slog.New(slog.DiscardHandler), Sinks: []SinkOptions{{Name: "a sink", Port: port, Required: required, From: NewChain()}},
	}), policy
}

func event(user string, op audit.Op) *audit.Event {
	return &audit.Event{User: user, Op: op, Parts: []audit.Part{{Key: []byte("k")}}}
}

// Ensure that calls are refused once a required sink has taken nothing for the deadline, not before and not for longer than it
// takes nothing; that those which are not recorded pass, and those of the exempt user; and that a best-effort sink refuses
// none.
func TestTrail_Admit_blocked(t *testing.T) {
	for name, fails := range map[string]error{"hangs": nil, "fails": errors.New("no space left on device")} {
		synctest.Test(t, func(t *testing.T) {
			port, open := &gate{fails: fails}, make(chan struct{})
			if fails == nil {
				port.open = open
			}
			sink, policy := newTrail(port, true, 1<<20)
			sink.Run()
			admit := func(user string, op audit.Op) error { return sink.Admit(t.Context(), policy, event(user, op)) }
			for _, want := range []bool{false, true, true} {
				err := admit("alice", audit.OpPut)
				var blocked *BlockedError
				if errors.As(err, &blocked) != want {
					t.Errorf("%s: after %v: %v", name, sink.sinks[0].overdue(time.Now()), err)
				}
				if want && fails != nil && !strings.Contains(err.Error(), "a sink of this member, which is required, has taken no record "+
					"for") || want && fails != nil && !strings.Contains(err.Error(), fails.Error()) {
					t.Errorf("%s: got %v", name, err)
				}
				if err == nil {
					sink.Record(policy, event("alice", audit.OpPut))
				}
				if err := errors.Join(admit("root", audit.OpPut), admit("alice", audit.OpRange)); err != nil {
					t.Errorf("%s: got %v", name, err)
				}
				<-time.After(deadline + time.Second)
			}
			if status, refused := sink.Status(); !status[0].Blocked || refused != 2 || status[0].Late < deadline {
				t.Errorf("%s: got %+v, %d", name, status, refused)
			}
			port.set(nil, nil)
			close(open)
			<-time.After(time.Second)
			if err := admit("alice", audit.OpPut); err != nil {
				t.Errorf("%s: once it takes records again: %v", name, err)
			}
			sink.Close(time.Second)
			if !strings.Contains(string(port.lines), `"event":"ends"`) {
				t.Errorf("%s: got %s", name, port.lines)
			}
		})
	}
}

// Ensure that a call waits while a required sink has little room, for the deadline at most, and passes once there is room.
func TestTrail_Admit_waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := &gate{open: make(chan struct{})}
		sink, policy := newTrail(port, true, 4<<10)
		sink.Run()
		defer sink.Close(time.Second)
		sink.Record(policy, event("alice", audit.OpPut))
		synctest.Wait()
		for !sink.sinks[0].halfFull() {
			sink.Record(policy, event("alice", audit.OpPut))
		}
		begun := time.Now()
		if err := sink.Admit(t.Context(), policy, event("alice", audit.OpPut)); err == nil || time.Since(begun) > deadline+time.Second {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := sink.Admit(ended, policy, event("alice", audit.OpPut)); err == nil {
			t.Error("a call that has ended is admitted")
		}
		go func() {
			<-time.After(time.Second)
			close(port.open)
		}()
		<-time.After(2 * time.Second)
		if err := sink.Admit(t.Context(), policy, event("alice", audit.OpPut)); err != nil {
			t.Errorf("with room: %v", err)
		}
	})
}

// Ensure that a best-effort sink which hangs refuses nothing, and counts what it drops; and that Close leaves it alone.
func TestTrail_bestEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := &gate{open: make(chan struct{})}
		sink, policy := newTrail(port, false, 4<<10)
		sink.Run()
		for range 100 {
			if err := sink.Admit(t.Context(), policy, event("alice", audit.OpPut)); err != nil {
				t.Fatal(err)
			}
			sink.Record(policy, event("alice", audit.OpPut))
		}
		<-time.After(time.Minute)
		status, refused := sink.Status()
		if status[0].Dropped == 0 || status[0].Blocked || refused != 0 {
			t.Errorf("got %+v, %d", status, refused)
		}
		begun := time.Now()
		sink.Close(time.Second)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("closing took %v", took)
		}
		close(port.open)
	})
}

// Ensure that heads are published each minute if the chain moved, and again until that works.
func TestTrail_heads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(1<<20, 0)
		sink, policy := newTrail(s.file, false, 1<<20)
		var heads []uint64
		var fails atomic.Bool
		fails.Store(true)
		sink.options.Publish = func(_ context.Context, head audit.Head) error {
			if fails.Load() {
				return errors.New("no leader")
			}
			heads = append(heads, head.Sequence)
			return nil
		}
		sink.Run()
		sink.Record(policy, event("alice", audit.OpPut))
		<-time.After(firstHead + 5*time.Second)
		fails.Store(false)
		<-time.After(publishAgain)
		synctest.Wait()
		if len(heads) != 1 || heads[0] != 2 {
			t.Errorf("got heads %v", heads)
		}
		<-time.After(5 * headEvery)
		sink.Record(policy, event("alice", audit.OpPut))
		<-time.After(headEvery + time.Second)
		synctest.Wait()
		if len(heads) != 2 || heads[1] != 3 {
			t.Errorf("got heads %v", heads)
		}
		sink.Close(time.Second)
	})
}

// Ensure that calls which are refused again and again leave room for the records of those that pass, and that the exempt user
// can log in.
func TestTrail_Admit_room(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := &gate{fails: errors.New("no space left on device")}
		sink, policy := newTrail(port, true, 64<<10)
		sink.Run()
		defer sink.Close(time.Second)
		sink.Record(policy, event("alice", audit.OpPut))
		<-time.After(deadline + time.Second)
		if sink.Admit(t.Context(), policy, &audit.Event{Op: audit.OpLogin, Login: "alice"}) == nil {
			t.Error("the login of another user passes")
		}
		if err := sink.Admit(t.Context(), policy, &audit.Event{Op: audit.OpLogin, Login: "root"}); err != nil {
			t.Errorf("the login of the exempt user: %v", err)
		}
		refused := event("alice", audit.OpPut)
		refused.Refused = true
		if body := string(policy.Body(nil, refused, audit.Metadata, audit.Plain)); !strings.Contains(body, `"decision":"refused"`) {
			t.Errorf("recorded as %s", body)
		}
		for range 1000 {
			sink.Record(policy, refused)
		}
		s := sink.sinks[0]
		before := s.dropped.Load()
		if before == 0 {
			t.Error("all refused calls are recorded")
		}
		for range 10 {
			sink.Record(policy, event("root", audit.OpPut))
		}
		if s.dropped.Load() != before {
			t.Error("refused calls left no room for those of the exempt user")
		}
	})
}
