package raft_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that a member in any role ignores every message that no correct member can have sent, and that each is counted by its
// reason. Without the filter some of them end the process, or the term.
func TestReplica_Receive_refused(t *testing.T) {
	noop := func(index consensus.Index, term consensus.Term) entry {
		return entry{Index: index, Term: term, Kind: consensus.EntryNoop}
	}
	client := consensus.Proposal{ID: consensus.ProposalID{Session: consensus.ClientSession(77, 1), Sequence: 1}, Kind: consensus.EntryCommand}
	own := client
	own.ID.Session.Number = 1
	first := position{Index: 1, Term: 1}
	for _, tc := range []struct {
		name string
		m    message // its term is added to the cluster's, which is 2
		why  filter.Reason
		ok   bool // it is taken
	}{
		{"a heartbeat of a second leader", message{Kind: consensus.MsgHeartbeat, From: 3}, filter.Leader, false},
		{"an append of a second leader", message{Kind: consensus.MsgAppend, From: 3, Prev: first}, filter.Leader, false},
		{"a heartbeat of a non-member", message{Kind: consensus.MsgHeartbeat, From: 9}, filter.NonMember, false},
		{"a non-member that leads the next term", message{Kind: consensus.MsgHeartbeat, From: 9, Term: 1}, filter.NonMember, false},
		{"the greatest term", message{Kind: consensus.MsgHeartbeat, From: 3, Term: math.MaxUint64 - 2}, filter.Malformed, false},
		{"a term far away", message{Kind: consensus.MsgVote, From: 3, Term: 1<<32 + 1, Last: first}, filter.TermJump, false},
		{"a pre-vote of a term far away", message{Kind: consensus.MsgPreVote, From: 9, Term: 1 << 40}, filter.TermJump, false},
		{"a put of a non-member", message{Kind: consensus.MsgPropose, From: 9, Proposals: []consensus.Proposal{own}}, filter.NonMember, false},
		{"a non-member's record",
			message{Kind: consensus.MsgRecord, From: 9, Proposals: []consensus.Proposal{client, own}}, filter.NonMember, false},
		{"a native client's record", message{Kind: consensus.MsgRecord, From: 9, Proposals: []consensus.Proposal{client}}, 0, true},
		{"a non-member's transfer", message{Kind: consensus.MsgTransfer, From: 9, Target: 3}, filter.NonMember, false},
		{"a non-member that holds the log", message{Kind: consensus.MsgAcknowledged, From: 9, Match: first}, filter.NonMember, false},
		{"a non-member's removal", message{Kind: consensus.MsgRemoved, From: 9}, filter.NonMember, false},
		{"a member's removal", message{Kind: consensus.MsgRemoved, From: 3}, filter.Removal, false},
		{"no kind", message{From: 3}, filter.Malformed, false},
		{"a kind that is no more", message{Kind: 21, From: 3}, filter.Malformed, false},
		{"a kind to come", message{Kind: 27, From: 3}, filter.Malformed, false},
		{"an index at the end",
			message{Kind: consensus.MsgAppendReply, From: 3, Match: position{Index: math.MaxUint64, Term: 1}}, filter.Malformed, false},
		{"entries with a gap", message{Kind: consensus.MsgAppend, From: 3, Term: 1, Prev: first,
			Entries: []entry{noop(2, 3), noop(4, 3)}}, filter.Malformed, false},
		{"entries of a falling term",
			message{Kind: consensus.MsgAppend, From: 3, Term: 1, Prev: first, Entries: []entry{noop(2, 3), noop(3, 2)}}, filter.Malformed, false},
		{"entries of a term to come",
			message{Kind: consensus.MsgAppend, From: 3, Term: 1, Prev: first, Entries: []entry{noop(2, 4)}}, filter.Malformed, false},
		{"an entry of no kind",
			message{Kind: consensus.MsgAppend, From: 3, Term: 1, Prev: first, Entries: []entry{{Index: 2, Term: 3, Kind: 7}}}, filter.Malformed, false},
		{"a revision at the end", message{Kind: consensus.MsgVoteReply, From: 3, Ballot: consensus.Ballot{Records: []consensus.Record{{
			Attempt: consensus.Attempt{Proposal: own.ID, Revision: math.MaxUint64}, Term: 1}}}}, filter.Malformed, false},
		{"a snapshot without voters",
			message{Kind: consensus.MsgSnapshotOffer, From: 3, Term: 1,
				Snapshot: &consensus.SnapshotMeta{Position: position{Index: 9, Term: 2}}}, filter.Malformed, false},
	} {
		for _, role := range []raft.Role{raft.Leader, raft.Follower} {
			c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.Fast.Footprint = footprintOf })
			c.elect(map[raft.Role]memberID{raft.Leader: 1, raft.Follower: 2}[role])
			c.tick(1)
			r := c.node(1).replica
			before := r.Status()
			m := tc.m
			m.To, m.Term = 1, m.Term+before.Term
			out := r.Step(raft.Receive{Message: m})
			after := r.Status()
			var want [filter.Reasons]uint64
			if !tc.ok {
				want[tc.why] = 1
			}
			if tc.m.Kind == consensus.MsgRemoved && tc.m.From == 3 && after.Removed {
				t.Errorf("%v: %s: removed", role, tc.name)
			}
			if got := r.Counts().Refused; got != want {
				t.Errorf("%v: %s: refused %v, want %v", role, tc.name, got, want)
			}
			if !tc.ok && (after.Term != before.Term || after.Leader != before.Leader || after.LastIndex != before.LastIndex || len(out.Send) > 0) {
				t.Errorf("%v: %s: %+v became %+v, sends %v", role, tc.name, before, after, out.Send)
			}
		}
	}
}

// Ensure that a member whose leader is alive obeys that leader when it says that the member was removed.
func TestReplica_Receive_removedByLeader(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(2)
	c.tick(1)
	r := c.node(1).replica
	r.Step(raft.Receive{Message: message{Kind: consensus.MsgRemoved, From: 2, To: 1, Term: r.Status().Term}})
	if s := r.Status(); !s.Removed || r.Counts().Refused[filter.Removal] != 0 {
		t.Errorf("removed: %v, refused: %v", s.Removed, r.Counts().Refused)
	}
}

// Ensure that a member which comes back after the others were all replaced still follows a leader that its log does not know,
// and that one without any configuration follows any.
func TestReplica_Receive_leaderToBeKnown(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	s := c.node(3).replica.Status()
	heartbeat := func(r *raft.Replica) {
		r.Step(raft.Receive{Message: message{Kind: consensus.MsgHeartbeat, From: 9, To: s.ID, Term: s.Term + 5}})
	}
	heartbeat(c.node(3).replica)
	if leader := c.node(3).replica.Leader(); leader != 1 {
		t.Errorf("it hears its leader, and follows %v", leader)
	}
	c.isolate(3, true)
	c.tick(40, 3)
	heartbeat(c.node(3).replica)
	if leader := c.node(3).replica.Leader(); leader != consensus.NoMember {
		t.Errorf("it heard nobody for as long as elections take, and follows %v", leader)
	}
	c.tick(70, 3)
	heartbeat(c.node(3).replica)
	if leader := c.node(3).replica.Leader(); leader != 9 {
		t.Errorf("it heard nobody for long, and follows %v", leader)
	}
	joins, err := raft.New(raft.Defaults(3), raft.Restored{})
	if err != nil {
		t.Fatal(err)
	}
	s.Term = 1 << 50
	heartbeat(joins)
	if leader := joins.Leader(); leader != 9 || joins.Term() != 1<<50+5 {
		t.Errorf("a member that joins follows %v at term %d", leader, joins.Term())
	}
	if _, err := raft.New(raft.Defaults(3), raft.Restored{Hard: consensus.HardState{Term: math.MaxUint64}}); err == nil {
		t.Error("a term at the end of numbers is taken from the disk")
	}
}

// hostile draws messages that are well encoded and may mean anything: numbers near those of the receiver, or at the limits.
type hostile struct{ rng *rand.Rand }

func (h hostile) number(near uint64) uint64 {
	switch h.rng.IntN(10) {
	case 0:
		return 0
	case 1:
		return math.MaxUint64 - uint64(h.rng.IntN(3))
	case 2:
		return 1 << (20 + h.rng.IntN(44))
	}
	return near + uint64(h.rng.IntN(5)) - min(near, 2)
}

func (h hostile) position(s *raft.Status) position {
	if h.rng.IntN(3) == 0 {
		return position{Index: s.LastIndex, Term: s.LastTerm}
	}
	return position{Index: consensus.Index(h.number(uint64(s.LastIndex))), Term: consensus.Term(h.number(uint64(s.LastTerm)))}
}

func (h hostile) proposal() consensus.Proposal {
	p := proposalOf(h.number(3), []string{"a=1", "b=2", "*=3", "!=4", "~a=5", ""}[h.rng.IntN(6)])
	if h.rng.IntN(3) == 0 {
		p.ID.Session = consensus.ClientSession(77, h.number(1))
	}
	if h.rng.IntN(6) == 0 {
		p.Kind = consensus.EntryKind(h.rng.IntN(8))
		p.Payload = consensus.AppendChangeRequest(nil, &consensus.ChangeRequest{Abort: h.rng.IntN(2) == 0})
	}
	return p
}

func (h hostile) message(from memberID, s *raft.Status) message {
	m := message{
		Kind: consensus.MessageKind(h.rng.IntN(29)), From: from, To: s.ID, Term: consensus.Term(h.number(uint64(s.Term))),
		Commit: consensus.Index(h.number(uint64(s.Commit))), Durable: consensus.Index(h.number(uint64(s.Durable))),
		FollowerState: consensus.FollowerState{Received: consensus.Index(h.number(uint64(s.LastIndex)))}, Round: h.number(3), Due: h.number(3),
		LogQuery: consensus.LogQuery{Query: h.number(3), Unlogged: h.rng.IntN(2) == 0},
		Reject:   h.rng.IntN(3) == 0, Force: h.rng.IntN(4) == 0, Target: memberID(h.rng.IntN(5)), Config: s.ConfigID,
	}
	m.Prev, m.Last, m.Match, m.Refused, m.Hint, m.Committed = h.position(s), h.position(s), h.position(s), h.position(s), h.position(s), h.position(s)
	for i := range h.rng.IntN(4) {
		e := entry{Index: m.Prev.Index + 1 + consensus.Index(i), Term: m.Term, Kind: consensus.EntryKind(1 + h.rng.IntN(4)), Payload: []byte("a=h")}
		if h.rng.IntN(5) == 0 {
			e.Term, e.Index = consensus.Term(h.number(uint64(s.Term))), consensus.Index(h.number(uint64(e.Index)))
		}
		if e.Kind == consensus.EntryConfig {
			change := consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Config: testConfig([]memberID{1, 2, 3}, nil)}
			e.Payload = consensus.AppendConfigChange(nil, &change)
		}
		m.Entries = append(m.Entries, e)
	}
	for range h.rng.IntN(3) {
		p := h.proposal()
		attempt := consensus.Attempt{Proposal: p.ID, Revision: h.number(2)}
		m.Proposals = append(m.Proposals, p)
		m.Records = append(m.Records, consensus.Record{Attempt: attempt, Term: s.Term, Config: s.ConfigID, Payload: p.Payload})
		m.Verdicts = append(m.Verdicts, consensus.Verdict{Attempt: attempt, Refusal: consensus.Refused(h.rng.IntN(9))})
		m.Refusals = append(m.Refusals, consensus.Refusal{ID: p.ID, Reason: consensus.RefusalReason(h.rng.IntN(20)), Config: s.ConfigID})
		m.Reads = append(m.Reads, consensus.ReadIndex{ID: h.number(3), Index: consensus.Index(h.number(uint64(s.Commit)))})
	}
	if h.rng.IntN(3) == 0 {
		m.Snapshot = &consensus.SnapshotMeta{Position: h.position(s), Config: testConfig([]memberID{1, 2, 3}, nil), ConfigID: s.ConfigID}
	}
	return m
}

// besiege runs a cluster that an attacker sends hostile messages, while clients write and read and members campaign. An
// attacker that is no member breaks no law, unless a member has come to follow it. One with the id of a member can cost
// elections and writes, but ends no process, and moves no term beyond what a message may.
func besiege(seed uint64, from memberID, steps int, faults rules.Set) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	h := hostile{rand.New(rand.NewPCG(seed, 3))}
	careful := h.rng.IntN(2) == 0
	c := newCluster([]memberID{1, 2, 3}, []memberID{4}, func(o *raft.Options) {
		o.Fast.Footprint, o.PreVote, o.CheckQuorum, o.Seed, o.Dropped = footprintOf, careful, careful, seed, faults
	})
	l := newFastLaws(c)
	c.elect(1)
	highest := c.node(1).replica.Term()
	for range steps {
		n := c.nodes[h.rng.IntN(len(c.nodes))]
		switch h.rng.IntN(8) {
		case 0:
			p := proposalOf(uint64(1000+h.rng.IntN(1000)), "a=w")
			l.invoke(p.ID)
			n.step(raft.Propose{Proposals: []consensus.Proposal{p}, Fast: h.rng.IntN(2) == 0})
		case 1:
			n.step(raft.Tick{})
		case 2:
			for range 5 {
				c.deliverFirst()
			}
		case 3:
			if from == 9 && h.rng.IntN(10) == 0 {
				n.step(raft.Campaign{})
			}
		default:
			s := n.replica.Status()
			m := h.message(from, &s)
			decoded, _, err := consensus.DecodeMessage(consensus.AppendMessage(nil, &m))
			if errors.Is(err, level.ErrLater) {
				decoded = m // a transport ends the stream, and the core does not rely on it
			} else if err != nil {
				return err
			}
			if from == 9 && m.Kind == consensus.MsgFastPropose || m.Kind == consensus.MsgRecord {
				for i := range m.Proposals {
					l.invoke(m.Proposals[i].ID)
				}
			}
			n.step(raft.Receive{Message: decoded})
		}
		if term := n.replica.Term(); term > highest+1<<32+1 {
			return fmt.Errorf("the term went from %d to %d", highest, term)
		} else {
			highest = max(highest, term)
		}
		if len(c.net) > 200 {
			c.net = c.net[100:]
		}
		// A member without a leader may follow one that its log does not know (TestReplica_Receive_leaderToBeKnown): all others
		// may have been replaced. Package identity has to check that it is a member; here the attacker has won.
		if from == 9 && n.replica.Leader() == from {
			return nil
		}
		if from == 9 && l.broken != "" {
			return fmt.Errorf("a law: %s", l.broken)
		}
	}
	return nil
}

// Ensure the same on a few seeds, and that the siege finds the consequences of a member without the filter.
func TestReplica_Receive_hostile(t *testing.T) {
	for seed := range uint64(150) {
		for _, from := range []memberID{9, 2} {
			if err := besiege(seed, from, 400, rules.Set{}); err != nil {
				t.Fatalf("seed %d, sender %v: %v", seed, from, err)
			}
		}
	}
	for _, from := range []memberID{9, 2} {
		found := error(nil)
		for seed := uint64(0); seed < 150 && found == nil; seed++ {
			found = besiege(seed, from, 400, rules.Set{rules.BelieveMessages: true})
		}
		if found == nil {
			t.Errorf("sender %v: messages are believed, and nothing happens", from)
		}
		t.Logf("sender %v, messages believed: %v", from, found)
	}
}

// FuzzStep draws sieges.
func FuzzStep(f *testing.F) {
	f.Add(uint64(1), uint8(9))
	f.Add(uint64(2), uint8(2))
	f.Add(uint64(623), uint8('i')) // a member follows the attacker
	f.Fuzz(func(t *testing.T, seed uint64, from uint8) {
		sender := memberID(2 + from%2*7)
		if err := besiege(seed, sender, 300, rules.Set{}); err != nil {
			t.Fatalf("sender %v: %v", sender, err)
		}
	})
}

// FuzzStep_bytes gives a leader and a follower every message that decodes.
func FuzzStep_bytes(f *testing.F) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	h := hostile{rand.New(rand.NewPCG(1, 1))}
	s := c.node(1).replica.Status()
	for range 30 {
		m := h.message(2, &s)
		f.Add(consensus.AppendMessage(nil, &m))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, _, err := consensus.DecodeMessage(src)
		if err != nil {
			return
		}
		c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.Fast.Footprint = footprintOf })
		c.elect(1)
		for _, n := range c.nodes {
			m.To = n.id
			n.step(raft.Receive{Message: m})
			n.step(raft.Tick{})
			if n.replica.Term() > 1<<33 {
				t.Fatalf("term %d", n.replica.Term())
			}
		}
	})
}
