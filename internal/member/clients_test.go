package member_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients"
)

const testClient = consensus.MemberID(0xc11e)

// told is the outcome of a client's proposal.
type told struct {
	result kv.Result
	err    error
}

type teller chan told

// strangers reports that no two clients are of one host.
func strangers(consensus.MemberID) bool { return false }

func (c teller) Complete(result kv.Result, err error) { c <- told{result, err} }

func (c *cluster) openSession(n *node, keep ...uint64) consensus.SessionID {
	c.t.Helper()
	above := uint64(0)
	for _, number := range keep {
		above = max(above, number)
	}
	session, err := n.Clients().OpenClientSession(c.ctx, testClient, above, keep, strangers)
	if err != nil {
		c.t.Fatal(err)
	}
	return session
}

// proposeFor proposes through a node and returns the channel of the outcome.
func (c *cluster) proposeFor(n *node, session consensus.SessionID, sequence uint64, key string) teller {
	c.t.Helper()
	answer := make(teller, 1)
	id := consensus.ProposalID{Session: session, Sequence: sequence}
	command := &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte("v")}}
	if err := n.Clients().ProposeFor(id, command, answer); err != nil {
		c.t.Fatal(err)
	}
	return answer
}

func (c *cluster) answered(answer teller) told {
	c.t.Helper()
	select {
	case got := <-answer:
		return got
	case <-c.ctx.Done():
		c.t.Fatal("no answer")
		return told{}
	}
}

func (c *cluster) version(n *node, key string) int64 {
	c.t.Helper()
	if err := n.ReadIndex(c.ctx); err != nil {
		c.t.Fatal(err)
	}
	machine, release := n.Machine()
	defer release()
	result, _, err := machine.Store().Range(&kv.RangeOp{Key: []byte(key)})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(result.KVs) == 0 {
		return 0
	}
	return result.KVs[0].Version
}

// TestMember_ProposeFor proposes the same proposal through every member, also after the leader that took it first is gone.
func TestMember_ProposeFor(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	asked := c.others(leader)
	session := c.openSession(asked[0])
	first := c.answered(c.proposeFor(asked[0], session, 1, "k"))
	if first.err != nil || first.result.Err != nil {
		t.Fatal(first)
	}
	for _, n := range []*node{asked[1], leader} {
		if got := c.answered(c.proposeFor(n, session, 1, "k")); got.err != nil || got.result.Revision != first.result.Revision {
			t.Errorf("through member %v: got %+v (%v), want %+v", n.id, got, got.err, first)
		}
	}
	waits := c.proposeFor(asked[0], session, 2, "lost")
	leader.stop()
	second := c.answered(waits)
	third := c.answered(c.proposeFor(asked[1], session, 2, "lost"))
	if second.err != nil || third.err != nil || second.result.Revision != third.result.Revision {
		t.Errorf("while the leader was lost: got %+v and %+v", second, third)
	}
	if k, lost := c.version(asked[0], "k"), c.version(asked[1], "lost"); k != 1 || lost != 1 {
		t.Errorf("written %d and %d times, want once", k, lost)
	}
	if got, found := asked[0].Clients().FirstResult(consensus.ProposalID{Session: session, Sequence: 1}); !found ||
		got.Revision != first.result.Revision {
		t.Errorf("the first result: got %v, %v", got, found)
	}
	next := c.openSession(asked[1], session.Number)
	if got := c.answered(c.proposeFor(asked[0], session, 3, "k")); got.result.Err != nil {
		t.Errorf("a session that was kept: got %+v", got)
	}
	asked[0].Clients().RetireClientSession(session)
	c.await("the end of the session", func(n *node) bool {
		machine, release := n.Machine()
		defer release()
		return !machine.SessionOpen(session)
	}, asked[0])
	if got := c.answered(c.proposeFor(asked[0], session, 1, "k")); got.result.Err != kv.ErrSessionUnknown {
		t.Errorf("a retired session: got %+v", got)
	}
	if got := c.answered(c.proposeFor(asked[0], next, 1, "k")); got.result.Err != nil || c.version(asked[0], "k") != 3 {
		t.Errorf("the next session: got %+v, version %d", got, c.version(asked[0], "k"))
	}
}

// pushedClock is the machine's clock until it is stopped; from then on the test moves it.
type pushedClock struct {
	env.WallClock
	stopped atomic.Pointer[time.Time]
}

func (c *pushedClock) Now() time.Time {
	if at := c.stopped.Load(); at != nil {
		return *at
	}
	return time.Now()
}

func (c *pushedClock) advance(d time.Duration) {
	at := c.Now().Add(d)
	c.stopped.Store(&at)
}

// TestMember_KeepClient checks that the sessions of a silent client are retired, and no others. The clock moves on once the
// leader has noted contact with the other client, so that the speed of the members does not matter.
func TestMember_KeepClient(t *testing.T) {
	const patience = 400 * time.Millisecond
	clock := &pushedClock{}
	c := startWith(t, 3, &cluster{clients: patience, clock: clock})
	clock.advance(0)
	leader := c.leader()
	asked := c.others(leader)[0]
	kept, err := asked.Clients().OpenClientSession(c.ctx, 0xaaaa, 0, nil, strangers)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time under another leader, if this one hands over
		silent := c.openSession(asked)
		for asked.open(silent) {
			if c.ctx.Err() != nil {
				t.Fatal("the session of a silent client does not end")
			}
			at := clock.Now()
			c.await("the client that is heard", func(n *node) bool {
				n.Clients().KeepClient(0xaaaa)
				return !n.open(silent) || c.leaderHeard(n, 0xaaaa, at)
			}, asked)
			clock.advance(patience / 4)
		}
		if !asked.open(kept) {
			t.Fatal("the session of a client that was heard was retired")
		}
		if err := c.leader().TransferLeadership(c.ctx, asked.ID()); err != nil {
			break
		}
	}
	ahead := consensus.ClientSession(0xaaaa, 1<<24+100).Number
	for _, above := range []uint64{math.MaxUint64 - 1, ahead} {
		if _, err := asked.Clients().OpenClientSession(c.ctx, 0xaaaa, above, nil, strangers); err != clients.ErrClientSession {
			t.Errorf("a client that uses the numbers up: got %v", err)
		}
	}
	if _, err := asked.Clients().OpenClientSession(c.ctx, leader.ID(), 0, nil, strangers); err != clients.ErrClientID {
		t.Errorf("a client with the id of a member: got %v", err)
	}
}

// open reports whether a session is open, as far as entries are applied at the node.
func (n *node) open(session consensus.SessionID) bool {
	machine, release := n.Machine()
	defer release()
	return machine.SessionOpen(session)
}

// leaderHeard reports whether the leader that n follows has noted contact with a client since a time.
func (c *cluster) leaderHeard(n *node, client consensus.MemberID, since time.Time) bool {
	return slices.ContainsFunc(c.running(), func(leader *node) bool {
		return leader.ID() == n.Leader() && !leader.HeardForTesting(client).Before(since)
	})
}
