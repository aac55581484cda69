package raft_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// A native client proves its key, so its ids are its own. It may still send different payloads under one id to different
// voters.

const liar = memberID(777)

// lies sends the n-th proposal of the lying client to every voter, each with its payload of the list; a voter with an empty
// payload gets nothing. The first voter leads.
func (c *cluster) lies(n uint64, payloads []string) {
	s := c.node(1).replica.Status()
	for i, payload := range payloads {
		m := message{
			Kind: consensus.MsgRecord, From: liar, To: memberID(i + 1), Term: s.Term, Config: s.ConfigID,
			Proposals: []consensus.Proposal{{
				ID:   consensus.ProposalID{Session: consensus.ClientSession(liar, 1), Sequence: n},
				Kind: consensus.EntryCommand, Payload: []byte(payload),
			}},
		}
		if i == 0 {
			m.Kind = consensus.MsgFastPropose
		}
		if payload != "" {
			c.net = append(c.net, m)
		}
	}
}

// deliverFast delivers the messages of the fast path, with which no entry reaches another log. Some of them are lost. It
// returns those that are for the client.
func (c *cluster) deliverFast(lost func() bool) (toClient []message) {
	for moved := true; moved; {
		moved = false
		for _, n := range c.nodes {
			moved = n.drain() || moved
		}
		net := c.net
		c.net = nil
		for i := range net {
			switch {
			case !isFast(&net[i]):
				c.net = append(c.net, net[i])
			case net[i].To == liar:
				toClient = append(toClient, net[i])
			case net[i].From != liar && lost():
			default:
				c.deliver(net[i])
				moved = true
			}
		}
	}
	return toClient
}

// die ends the leader before an append of it arrives, and lets another member be elected.
func (c *cluster) die(successor memberID) {
	c.net = nil
	c.node(1).crash()
	c.isolate(1, true)
	var left []memberID
	for _, n := range c.nodes[1:] {
		n.step(raft.Unreachable{Member: 1})
		left = append(left, n.id)
	}
	c.node(successor).step(raft.Campaign{})
	c.settle()
	c.tick(5, left...)
}

// Ensure that the payload which a lying client sent to only one voter is not recovered because others hold its id: it would be
// applied before a write of the same key that was reported to its proposer. Dropping the digest shows that.
func TestReplica_Recover_clientEquivocates(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, func(o *raft.Options) {
			o.Fast.Footprint = footprintOf
			o.Dropped[rules.RecoverAnyPayload] = dropped
		})
		l := newFastLaws(c)
		c.elect(1)
		c.tick(3)
		c.lies(1, []string{"h=1", "b=lie", "h=1", "h=1", "h=1"})
		c.deliverFast(func() bool { return false })
		l.invoke(proposalOf(1, "").ID)
		c.proposeFast(3, "b=honest")
		c.deliverFast(func() bool { return false })
		if len(l.wins) != 1 {
			t.Fatalf("the honest write was decided %d times", len(l.wins))
		}
		c.die(2)
		l.same()
		if broken := l.broken != ""; broken != dropped {
			t.Errorf("digest dropped: %v, broken law: %q", dropped, l.broken)
		}
	}
}

// Ensure that no mixture of payloads under one id, sent to any of the voters, breaks a promise to an honest proposer, whichever
// member is elected next. Dropping the digest breaks one.
func TestReplica_Recover_clientsEquivocateAtRandom(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		broken, won := "", 0
		for seed := range uint64(400) {
			rng := rand.New(rand.NewPCG(seed, 54))
			l := lyingRun(rng, dropped)
			won += len(l.wins)
			if l.broken != "" && broken == "" {
				broken = fmt.Sprintf("seed %d: %s", seed, l.broken)
			}
		}
		if (broken != "") != dropped || won < 100 {
			t.Errorf("digest dropped: %v, broken law: %q; %d promises", dropped, broken, won)
		}
	}
}

// lyingRun lets a liar and two honest members propose concurrently, and the leader die.
func lyingRun(rng *rand.Rand, dropped bool) *fastLaws {
	ids := []memberID{1, 2, 3, 4, 5, 6, 7}[:4+rng.IntN(4)]
	c := newCluster(ids, nil, func(o *raft.Options) {
		o.Fast.Footprint = footprintOf
		o.Dropped[rules.RecoverAnyPayload] = dropped
	})
	l := newFastLaws(c)
	c.elect(1)
	c.tick(3)
	lost := func() bool { return rng.IntN(20) == 0 }
	for n := range uint64(3) {
		told := make([]string, len(ids))
		for i := range told {
			told[i] = []string{"h=1", "b=lie", "a=lie", "", "h=1"}[rng.IntN(5)]
		}
		c.lies(n+1, told)
		c.deliverFast(lost)
		command := []string{"a=honest", "b=honest", "c=honest"}[rng.IntN(3)]
		l.invoke(proposalOf(c.nextSeq+1, "").ID)
		c.proposeFast(ids[1+rng.IntN(len(ids)-1)], command)
		c.deliverFast(lost)
	}
	c.die(ids[1+rng.IntN(len(ids)-1)])
	l.same()
	return l
}

// Ensure that a client does not take for decided a proposal that members hold under one id with different payloads. That is
// possible: each member makes the command from the request and its own view of the user's rights. The leader dies, and no
// member can tell which payload was decided. Dropping the digest shows that.
func TestTally_payloadsDiffer(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, func(o *raft.Options) { o.Fast.Footprint = footprintOf })
		c.elect(1)
		c.tick(3)
		client := tally.Tally{Rules: tally.Rules{ProposerAnyPayload: dropped}}
		client.Reset([]memberID{1, 2, 3, 4, 5})
		id := consensus.ProposalID{Session: consensus.ClientSession(liar, 1), Sequence: 1}
		client.Open(id)
		c.lies(1, []string{"a=1", "a=2", "a=3", "a=4", "a=1"})
		told := false
		for _, m := range c.deliverFast(func() bool { return false }) {
			for _, v := range m.Verdicts {
				var decided bool
				if m.Kind == consensus.MsgFast {
					_, decided = client.Answered(m.From, v)
				} else {
					_, decided = client.Accepted(m.From, v.Attempt)
				}
				told = told || decided
			}
		}
		c.isolate(5, true)
		c.die(2)
		if _, applied := c.node(2).store.keys.results[id]; applied || told != dropped {
			t.Errorf("digest dropped: %v, decided %v, applied %v", dropped, told, applied)
		}
	}
}
