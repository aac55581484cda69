package member_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/transport"
)

// aheadClock is the machine's clock, moved ahead by an offset.
type aheadClock struct {
	env.WallClock
	ahead atomic.Int64
}

func (c *aheadClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// stuckHandler is a handler of log messages that blocks from some moment on.
type stuckHandler struct {
	stuck  chan struct{} // closed: messages block from now on
	free   chan struct{}
	caught chan struct{}
}

func (h *stuckHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *stuckHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *stuckHandler) WithGroup(string) slog.Handler            { return h }

func (h *stuckHandler) Handle(context.Context, slog.Record) error {
	select {
	case <-h.stuck:
		select {
		case h.caught <- struct{}{}:
		default:
		}
		<-h.free
	default:
	}
	return nil
}

// startWatched starts a cluster of one member with the test's clock, log and observers.
func startWatched(t *testing.T, change func(*member.Options)) *node {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	t.Cleanup(cancel)
	c := &cluster{t: t, ctx: ctx}
	n := c.reserve()
	n.id = 1
	n.create(consensus.Config{Voters: []consensus.MemberID{1},
		Members: []consensus.Member{{ID: 1, PeerURLs: []string{n.url()}}}})
	data, err := datadir.Open(n.data())
	if err != nil {
		t.Fatal(err)
	}
	core := raft.Defaults(1)
	core.Cluster = testCluster
	options := member.Options{Data: data, Raft: core, TickInterval: 5 * time.Millisecond, RequestTimeout: 10 * time.Second,
		Clock: env.WallClock{}, Logger: slog.New(slog.DiscardHandler)}
	change(&options)
	n.Member = member.New(options)
	n.Membership = n.Member.Membership()
	n.peers, err = transport.New(transport.Options{Self: identity.Claim{Member: 1, Cluster: testCluster}, Handler: n.PeerHandler(),
		Listeners: []net.Listener{n.listen}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	n.listen = nil
	if err := n.Start(n.peers); err != nil {
		t.Fatal(err)
	}
	c.leader()
	return n
}

// Ensure that a member whose disk or state machine hangs reports it, and that it stops reporting it once that is over.
func TestMember_Stalled(t *testing.T) {
	for _, row := range []struct{ part, want string }{
		{"disk", "writing the log"},
		{"apply", "applying entries"},
	} {
		t.Run(row.part, func(t *testing.T) {
			clock := &aheadClock{}
			var hang atomic.Bool
			hangs, free := make(chan struct{}, 1), make(chan struct{})
			observe := func(time.Duration) {
				if hang.CompareAndSwap(true, false) {
					hangs <- struct{}{}
					<-free
				}
			}
			n := startWatched(t, func(o *member.Options) {
				o.Clock = clock
				if row.part == "disk" {
					o.Synced = observe
				} else {
					o.Applied = observe
				}
			})
			defer n.stop()
			n.c.put(n, "a")
			hang.Store(true)
			put := make(chan error, 1)
			go func() {
				_, err := n.Propose(n.c.ctx, &kv.Command{Put: &kv.PutOp{Key: []byte("b")}})
				put <- err
			}()
			<-hangs
			if err := n.Stalled(time.Minute); err != nil {
				t.Errorf("at once: %v", err)
			}
			clock.ahead.Add(int64(2 * time.Minute))
			n.c.await("that "+row.want+" hangs", func(n *node) bool { // the loop sees the new time at its next tick
				err := n.Stalled(time.Minute)
				return err != nil && strings.Contains(err.Error(), row.want)
			}, n)
			close(free)
			if err := <-put; err != nil {
				t.Fatal(err)
			}
			n.c.await("progress", func(n *node) bool { return n.Stalled(time.Minute) == nil }, n)
		})
	}
}

// Ensure that a member whose loop hangs reports it, and that a request for its status does not hang.
func TestMember_Stalled_loop(t *testing.T) {
	clock := &aheadClock{}
	log := &stuckHandler{make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)}
	n := startWatched(t, func(o *member.Options) { o.Clock, o.Logger = clock, slog.New(log) })
	defer n.stop()
	before := n.Status()
	close(log.stuck)
	// The loop logs a change of the members, and so hangs in the handler.
	go func() {
		_, _ = n.ChangeConfig(n.c.ctx, consensus.ChangeOne(consensus.ChangeAddLearner,
			consensus.Member{ID: 2, PeerURLs: []string{"http://127.0.0.1:1"}}))
	}()
	<-log.caught
	clock.ahead.Add(int64(2 * time.Minute))
	if err := n.Stalled(time.Minute); err == nil || !strings.Contains(err.Error(), "loop") {
		t.Errorf("got %v, want the loop", err)
	}
	if got := n.Status(); got.Term != before.Term {
		t.Errorf("status: got term %v, want the last one known, %v", got.Term, before.Term)
	}
	close(log.free)
	n.c.await("progress", func(n *node) bool { return n.Stalled(time.Minute) == nil }, n)
}
