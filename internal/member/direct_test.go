package member_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/proposals"
)

// ear receives, for a test client, the messages of all members.
type ear chan consensus.Message

func (e ear) Hear(m consensus.Message) { e <- m }

// listen makes the test client listen to every member, until the test ends.
func (c *cluster) listen() ear {
	c.t.Helper()
	e := make(ear, 100)
	for _, n := range c.running() {
		detach, err := n.Clients().ListenFor(testClient, e)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(detach)
	}
	return e
}

// level waits until all members have applied the same entries.
func (c *cluster) level() {
	c.t.Helper()
	for _, n := range c.running() {
		if err := n.ReadIndex(c.ctx); err != nil {
			c.t.Fatal(err)
		}
	}
}

func putCommand(key string) *kv.Command {
	return &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte("v")}}
}

// offer offers a put to some members, as a client does that knows the cluster in the state on.
func (c *cluster) offer(on clients.ClusterState, id consensus.ProposalID, key string, done proposals.Completion, to ...*node) {
	c.t.Helper()
	for _, n := range to {
		m := consensus.Message{Kind: consensus.MsgRecord, Term: on.Term, Config: on.Config}
		p, err := n.Clients().EncodeFor(id, putCommand(key))
		if n.id == on.Leader {
			m.Kind = consensus.MsgFastPropose
			p, _, err = n.Clients().ExpectFor(id, putCommand(key), done)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		m.Proposals = []consensus.Proposal{p}
		n.Clients().Offer(c.t.Context(), testClient, m)
	}
}

func (c *cluster) heard(e ear) consensus.Message {
	c.t.Helper()
	select {
	case m := <-e:
		return m
	case <-c.ctx.Done():
		c.t.Fatal("nobody says anything")
		return consensus.Message{}
	}
}

// heardOn returns the next verdict on a proposal that was offered in the state on; false if there may be none: n has another
// state by now, or the result has come while a verdict was lost, as any message may be.
func (c *cluster) heardOn(
	on *clients.ClusterState, n *node, e ear, id consensus.ProposalID, answer teller,
) (consensus.Message, bool) {
	c.t.Helper()
	for {
		changed := n.Clients().ClusterStateChanged()
		if now := n.Clients().ClusterState(); now.Leader != on.Leader || now.Term != on.Term || now.Config != on.Config {
			return consensus.Message{}, false
		}
		select {
		case m := <-e:
			if m.Term == on.Term && len(m.Verdicts) > 0 && m.Verdicts[0].Proposal == id { // else of an earlier one
				return m, true
			}
		case <-changed:
		case <-time.After(time.Second):
			if len(answer) > 0 {
				return consensus.Message{}, false
			}
		case <-c.ctx.Done():
			c.t.Fatal("nobody says anything")
		}
	}
}

// openFastPath waits for a leader in whose state clients may use the fast path.
func (c *cluster) openFastPath() (*node, clients.ClusterState) {
	c.t.Helper()
	leader := c.leader()
	c.await("an open fast path", func(n *node) bool { return n.Clients().ClusterState().Fast || n.Leader() != n.ID() }, leader)
	if on := leader.Clients().ClusterState(); on.Fast && on.Leader == leader.id {
		return leader, on
	}
	return c.openFastPath()
}

// TestMember_Offer checks that a client that counts verdicts itself concludes what the log says in the end.
func TestMember_Offer(t *testing.T) {
	c := startCluster(t, 3)
	session := c.openSession(c.leader())
	e := c.listen()
	wins := 0
	for sequence := uint64(1); sequence <= 10; sequence++ {
		id, answer := consensus.ProposalID{Session: session, Sequence: sequence}, make(teller, 1)
		c.level()
		leader, on := c.openFastPath()
		if len(on.Voters) != 3 {
			t.Fatalf("state: got %+v", on)
		}
		var count tally.Tally
		count.Reset(on.Voters)
		count.Open(id)
		c.offer(on, id, "k", answer, c.running()...)
		var won tally.Decision
		for range 3 {
			m, same := c.heardOn(&on, leader, e, id, answer)
			if !same {
				break // the result still comes, if it has not yet
			}
			v := m.Verdicts[0]
			if m.To != testClient || m.Config != on.Config {
				t.Fatalf("got %+v", m)
			}
			decided := false
			switch {
			case v.Refusal != consensus.RefusedNot: // its entry was there first
			case m.Kind == consensus.MsgFast:
				won, decided = count.Answered(m.From, v)
			default:
				won, decided = count.Accepted(m.From, v.Attempt)
			}
			if decided {
				wins++
				break
			}
			if v.Refusal != consensus.RefusedNot && m.Kind == consensus.MsgFast {
				break
			}
		}
		got := c.answered(answer)
		if got.err != nil || got.result.Err != nil {
			t.Fatalf("%d: %+v", sequence, got)
		}
		if won.Revision != 0 && (won.Revision != uint64(got.result.Revision) || string(won.Reply) != string(got.result.Append(nil))) {
			t.Errorf("%d: won %+v, applied %+v", sequence, won, got.result)
		}
	}
	if wins == 0 {
		t.Error("none was won")
	}
	if version := c.version(c.leader(), "k"); version != 10 {
		t.Errorf("written %d times", version)
	}
}

// noneHeld waits until no member holds a record.
func (c *cluster) noneHeld() {
	c.t.Helper()
	c.await("the end of its records", func(n *node) bool { return n.FastCounts().Held == 0 }, c.running()...)
}

// TestMember_Offer_orphan checks that the members give up a proposal that a client left with voters and never proposed, and
// that they say so if the client comes back.
func TestMember_Offer_orphan(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	session := c.openSession(leader)
	e := c.listen()
	id := consensus.ProposalID{Session: session, Sequence: 1}
	c.level()
	voters := c.others(leader)
	c.offer(leader.Clients().ClusterState(), id, "k", nil, voters...)
	for range voters {
		if m := c.heard(e); m.Verdicts[0].Revision == 0 {
			t.Fatalf("refused: %+v", m)
		}
	}
	c.await("the record", func(n *node) bool { return n.FastCounts().Held == 1 }, voters...)
	c.noneHeld()
	if leader.FastCounts().Aborted == 0 {
		t.Error("nobody gave it up")
	}
	for _, n := range c.running() {
		if got := c.answered(c.proposeFor(n, session, 1, "k")); got.err != nil || !errors.Is(got.result.Err, kv.ErrAborted) {
			t.Errorf("member %v says %+v", n.id, got)
		}
	}
	if version := c.version(leader, "k"); version != 0 {
		t.Errorf("written %d times", version)
	}
	if got := c.answered(c.proposeFor(leader, session, 2, "k")); got.err != nil || got.result.Err != nil {
		t.Errorf("under another name: %+v", got)
	}
}

// TestMember_Offer_retired checks that members forget the records of a session that has ended.
func TestMember_Offer_retired(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	session := c.openSession(leader)
	e := c.listen()
	c.level()
	voters := c.others(leader)
	c.offer(leader.Clients().ClusterState(), consensus.ProposalID{Session: session, Sequence: 1}, "k", nil, voters...)
	for range voters {
		c.heard(e)
	}
	leader.Clients().RetireClientSession(session)
	c.noneHeld()
	c.offer(leader.Clients().ClusterState(), consensus.ProposalID{Session: session, Sequence: 2}, "k", nil, voters...)
	for range voters {
		if m := c.heard(e); m.Verdicts[0].Refusal == consensus.RefusedNot {
			t.Errorf("held after its session: %+v", m)
		}
	}
	if version := c.version(leader, "k"); version != 0 {
		t.Errorf("written %d times", version)
	}
}

// TestMember_ListenFor checks that a client cannot listen under a member's id.
func TestMember_ListenFor(t *testing.T) {
	c := startCluster(t, 1)
	n := c.leader()
	for _, id := range []consensus.MemberID{consensus.NoMember, n.id} {
		if _, err := n.Clients().ListenFor(id, make(ear, 1)); !errors.Is(err, clients.ErrClientID) {
			t.Errorf("%v: got %v", id, err)
		}
	}
}
