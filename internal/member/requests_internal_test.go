package member

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/member/proposals"
)

// deafLoop takes requests and answers none.
type deafLoop struct{ table *proposals.Table }

func (l deafLoop) Proposals() *proposals.Table { return l.table }

func (l deafLoop) AddReader(*node.Reader) {}

func (l deafLoop) DropReader(*node.Reader) {}

// askedHost is a host for Requests.
type askedHost struct {
	lanes.Host
	woken    atomic.Int64
	replaced error // error of a member that serves nothing
	connects bool
	stopped  func() bool
}

func (h *askedHost) Turn(lanes.Lane)                   { h.woken.Add(1) }
func (h *askedHost) Superseded() error                 { return h.replaced }
func (h *askedHost) Connected(consensus.MemberID) bool { return h.connects }
func (h *askedHost) Stopped() bool                     { return h.stopped() }
func (h *askedHost) Needs([]byte) level.Level          { return level.First }

func (h *askedHost) Active(level.Level) bool { return true }

// asking are the requests of member 1, for goroutines that wait.
type asking struct {
	requests
	host      askedHost
	known     *lanes.KnownLeader
	endMember context.CancelFunc
}

func newAsking(t *testing.T) *asking {
	a := &asking{known: lanes.NewKnownLeader(1)}
	stopping, cancel := context.WithCancel(t.Context())
	a.endMember = cancel
	a.host.stopped = func() bool { return stopping.Err() != nil }
	a.requests = requests{
		Requests: lanes.NewRequests(&lanes.Options{
			RequestTimeout: time.Minute, MaxRequestBytes: 100, Clock: env.WallClock{},
		}, &a.host, a.known),
		self: 1, stopping: stopping, superseded: a.host.Superseded, started: make(chan struct{}),
	}
	return a
}

// start begins to serve requests.
func (a *asking) start(loop lanes.RequestLoop) {
	a.Open(loop)
	a.open()
}

// Ensure that a request before the start waits for it, and that a member that serves nothing refuses requests.
func TestRequests_awaitStart(t *testing.T) {
	superseded := errors.New("superseded")
	for _, row := range []struct {
		name string
		meet func(a *asking, cancel context.CancelFunc)
		want error
	}{
		{"it starts", func(a *asking, _ context.CancelFunc) { a.start(deafLoop{}) }, nil},
		{"it starts superseded", func(a *asking, _ context.CancelFunc) {
			a.host.replaced = superseded
			a.start(deafLoop{})
		}, superseded},
		{"the caller gives up", func(_ *asking, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"it stops", func(a *asking, _ context.CancelFunc) { a.endMember() }, ErrStopped},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAsking(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got error
			ended := false
			go func() {
				got = a.awaitStart(ctx)
				ended = true
			}()
			synctest.Wait()
			if ended {
				t.Errorf("%s: it did not wait: %v", row.name, got)
			}
			row.meet(a, cancel)
			synctest.Wait()
			if !ended || !errors.Is(got, row.want) {
				t.Errorf("%s: ended %t with %v", row.name, ended, got)
			}
		})
	}
}

// Ensure that a client's proposal that times out while no leader is known is not reported as one without effect: it may have
// been sent before.
func TestRequests_await_noLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		a.known.Follow(0, 1, time.Now)
		a.start(deafLoop{proposals.New(1, 1, 0)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		id := consensus.ProposalID{Session: consensus.SessionID{Member: 1, Number: 9}, Sequence: 1}
		_, err := a.await(ctx, id, func(proposals.Completion) error { return nil })
		if !errors.Is(err, ErrLeaderFailed) {
			t.Errorf("%v, want %v", err, ErrLeaderFailed)
		}
	})
}

// Ensure that a request without a result ends with the likely reason, and is not sent again.
func TestRequests_command(t *testing.T) {
	put := &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
	follow := func(leader consensus.MemberID) func(*asking) {
		return func(a *asking) { a.known.Follow(leader, 1, time.Now) }
	}
	for _, row := range []struct {
		name     string
		before   func(*asking)
		meet     func(*asking)
		connects bool
		want     error
	}{
		{"no leader", follow(0), follow(0), true, ErrNoLeader},
		{"it leads itself", follow(1), follow(1), false, ErrTimeout},
		{"a leader that answers nothing", follow(2), follow(2), true, ErrTimeout},
		{"the leader was lost meanwhile", follow(2), follow(3), true, ErrLeaderFailed},
		{"no connection to the leader", follow(2), follow(2), false, ErrConnectionLost},
		{"it left for a leader that is gone", follow(2), func(a *asking) {
			table := a.Proposals()
			open := table.Take(1, time.Time{}, false).Commands[0] // the opening of the session is first
			entry := consensus.Entry{Index: 1, Kind: open.Kind, Proposal: open.ID, Payload: open.Payload}
			table.Resolve([]consensus.Entry{entry}, make([]kv.Result, 1))
			table.Take(2, time.Time{}, false)
			follow(0)(a)
		}, true, ErrLeaderFailed},
		{"the member stops", follow(2), func(a *asking) { a.endMember() }, true, ErrStopped},
	} {
		for way, ask := range map[string]func(t *testing.T, a *asking, answer ending){
			"waits": func(t *testing.T, a *asking, answer ending) {
				go func() { answer.Complete(a.command(t.Context(), put)) }()
			},
			"does not wait": func(t *testing.T, a *asking, answer ending) {
				if _, err := a.Requests.Propose(put, answer); err != nil {
					t.Error(err)
				}
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				a := newAsking(t)
				a.host.connects = row.connects
				row.before(a)
				a.start(deafLoop{proposals.New(1, 1, 0)})
				answer := make(ending, 1)
				ask(t, a, answer)
				synctest.Wait()
				row.meet(a)
				if err := <-answer; !errors.Is(err, row.want) || a.host.woken.Load() == 0 {
					t.Errorf("%s, who asks %s: got %v, woken %d times", row.name, way, err, a.host.woken.Load())
				}
				a.endMember()
			})
		}
	}
	a := newAsking(t)
	a.start(deafLoop{proposals.New(1, 1, 0)})
	large := &kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: make([]byte, 100)}}
	if _, err := a.command(t.Context(), large); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large command: %v", err)
	}
}

// ending receives the error with which a command ended.
type ending chan error

func (e ending) Complete(_ kv.Result, err error) { e <- err }
