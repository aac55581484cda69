package member

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// changing is a changer over configurations that are applied one after another.
type changing struct {
	changer
	applied []consensus.Config // the first one is applied now
	news    broadcast.Signal
	answers []error // results of proposals; after the last one, proposals are applied
	asked   int
	reads   int
}

func newChanging(t *testing.T, applied ...consensus.Config) *changing {
	c := &changing{applied: applied}
	c.changer = changer{
		confirm: func(context.Context, *consensus.ChangeRequest) error { return nil },
		entry: func(context.Context, consensus.EntryKind, []byte) (kv.Result, error) {
			if c.asked++; c.asked <= len(c.answers) {
				return kv.Result{}, c.answers[c.asked-1]
			}
			return kv.Result{}, nil
		},
		readIndex: func(context.Context) error {
			c.reads++
			c.apply()
			return nil
		},
		config: func() consensus.Config { return c.applied[0] }, changed: c.news.Next,
		patience: time.Second, poll: 100 * time.Millisecond, stopping: t.Context(),
	}
	return c
}

// apply applies the next configuration.
func (c *changing) apply() {
	c.applied = c.applied[1:]
	c.news.Send()
}

// Ensure that a change is done when the rule of its protocol says so, and that an aborted change does not count as done.
func TestChanger_change(t *testing.T) {
	before := consensus.Config{Voters: []consensus.MemberID{1, 2, 3}}
	joint := consensus.Config{Voters: []consensus.MemberID{1, 2}, Outgoing: []consensus.MemberID{1, 2, 3}}
	after := consensus.Config{Voters: []consensus.MemberID{1, 2}}
	steps := []consensus.ChangeStep{{Kind: consensus.ChangeRemove, Member: consensus.Member{ID: 3}}}
	for _, row := range []struct {
		name     string
		protocol consensus.Protocol
		applied  []consensus.Config
		waits    bool // the change waits for the second configuration
		reads    int
		want     error
	}{
		{"a single change", consensus.ProtocolSingle, []consensus.Config{after}, false, 0, nil},
		{"a joint change", consensus.ProtocolJoint, []consensus.Config{joint, after}, true, 0, nil},
		{"a joint change, aborted", consensus.ProtocolJoint, []consensus.Config{joint, before}, true, 0, membership.ErrChangeAborted},
		{"an early one", consensus.ProtocolJointEarly, []consensus.Config{joint, after}, false, 1, nil},
		{"an early one, aborted", consensus.ProtocolJointEarly, []consensus.Config{joint, before}, false, 1, membership.ErrChangeAborted},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newChanging(t, row.applied...)
			done := make(chan error, 1)
			go func() {
				_, err := c.change(t.Context(), &consensus.ChangeRequest{Steps: steps, Protocol: row.protocol})
				done <- err
			}()
			synctest.Wait()
			if waits := len(done) == 0; waits != row.waits {
				t.Fatalf("%s: waits %t", row.name, waits)
			}
			if row.waits {
				c.apply()
			}
			if err := <-done; !errors.Is(err, row.want) || c.reads != row.reads {
				t.Errorf("%s: %v after %d reads", row.name, err, c.reads)
			}
		})
	}
}

// Ensure that a change waits for a change before it and for a new leader, but not for ever, and not if the caller expects a
// certain configuration.
func TestChanger_propose(t *testing.T) {
	pending := &membership.RefusedError{Reason: consensus.ReasonChangePending}
	for _, row := range []struct {
		name     string
		answers  []error
		expected consensus.ConfigID
		asked    int
		want     error
	}{
		{"one before it ends", []error{pending, &membership.RefusedError{Reason: consensus.ReasonQuorumLost}}, consensus.ConfigID{}, 3, nil},
		{"a configuration is expected", []error{pending}, consensus.ConfigID{Index: 1}, 1, pending},
		{"it is wrong", []error{ErrTooLarge}, consensus.ConfigID{}, 1, ErrTooLarge},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newChanging(t)
			c.answers = row.answers
			err := c.propose(t.Context(), &consensus.ChangeRequest{Expected: row.expected}, row.expected == consensus.ConfigID{})
			if !errors.Is(err, row.want) || c.asked != row.asked {
				t.Errorf("%s: %v, asked %d times", row.name, err, c.asked)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := newChanging(t)
		for range 100 {
			c.answers = append(c.answers, pending)
		}
		begun := time.Now()
		if err := c.propose(t.Context(), &consensus.ChangeRequest{}, true); !errors.Is(err, pending) || time.Since(begun) > 2*c.patience {
			t.Errorf("one that never ends: %v after %v", err, time.Since(begun))
		}
	})
}

// Ensure that peer URLs are checked again if another configuration is in force by the time of the change, but not without end,
// and not if the caller expects a certain configuration.
func TestChanger_confirmed(t *testing.T) {
	stale := &membership.RefusedError{Reason: consensus.ReasonStaleConfig}
	seen := consensus.ConfigID{Index: 5, Term: 1}
	for _, row := range []struct {
		name            string
		stale           int // answers
		expected        consensus.ConfigID
		confirmed, want int
	}{
		{"nothing happens meanwhile", 0, consensus.ConfigID{}, 1, 0},
		{"two other changes meanwhile", 2, consensus.ConfigID{}, 3, 0},
		{"others all the time", 9, consensus.ConfigID{}, confirmTries, 1},
		{"a configuration is expected", 9, consensus.ConfigID{Index: 3, Term: 1}, 1, 1},
	} {
		c := newChanging(t)
		for range row.stale {
			c.answers = append(c.answers, stale)
		}
		confirmed := 0
		c.confirm = func(_ context.Context, request *consensus.ChangeRequest) error {
			confirmed++
			if former := request.Steps[0].Member.FormerURLs; former != nil {
				t.Errorf("%s: what was seen before is kept: %v", row.name, former)
			}
			request.Steps[0].Member.FormerURLs = []string{"former"}
			if request.Expected == (consensus.ConfigID{}) {
				request.Expected = seen
			}
			return nil
		}
		asked := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{"new"}})
		asked.Expected = row.expected
		request, err := c.confirmed(t.Context(), &asked)
		if confirmed != row.confirmed || (err != nil) != (row.want != 0) || asked.Steps[0].Member.FormerURLs != nil {
			t.Errorf("%s: confirmed %d times, %v, asked for %+v", row.name, confirmed, err, asked)
		}
		if err == nil && (request.Expected != seen || len(request.Steps[0].Member.FormerURLs) != 1) {
			t.Errorf("%s: proposed %+v", row.name, request)
		}
	}
}
