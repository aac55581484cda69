package raft_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that each rule of membership changes is needed: with it switched off, the order of events known from the literature
// leads to the disaster described there, and the laws notice; with the rule on, the same order is harmless.
func TestReplica_ChangeConfig_unsafe(t *testing.T) {
	for _, tc := range []struct {
		name             string
		faults           rules.Set
		voters, learners []memberID
		turn             func(c *cluster)
		want             string
	}{
		{"a change before an entry of the term has committed", rules.Set{rules.ChangeInOldTerm: true},
			[]memberID{1, 2, 3, 4}, []memberID{5}, changeInOldTerm, "leader completeness"},
		{"a second change while the first is under way", rules.Set{rules.TwoChanges: true},
			[]memberID{1, 2, 3}, []memberID{4, 5}, twoChanges, "leader completeness"},
		{"learners count for commit", rules.Set{rules.CountLearners: true},
			[]memberID{1, 2, 3}, []memberID{4, 5}, countLearners, "leader completeness"},
		{"a leader that removed itself counts itself", rules.Set{rules.CountSelf: true},
			[]memberID{1, 2, 3, 4}, nil, countSelf, "leader completeness"},
		{"a joint configuration decides by one majority of all", rules.Set{rules.UnionOfJoint: true},
			[]memberID{1, 2, 3}, []memberID{4, 5}, unionOfJoint, "leader completeness"},
	} {
		play := func(faults rules.Set) string {
			c := newCluster(tc.voters, tc.learners, func(o *raft.Options) { o.Dropped, o.StrictReconfig = faults, false })
			l := newLaws()
			c.check = l.check // the laws of Raft alone: the losses that users would see
			c.elect(1)
			c.tick(2)
			tc.turn(c)
			return l.broken
		}
		if got := play(rules.Set{}); got != "" {
			t.Errorf("%s: without the fault: %s", tc.name, got)
		}
		if got := play(tc.faults); !strings.Contains(got, tc.want) {
			t.Errorf("%s: broken %q, want %q", tc.name, got, tc.want)
		} else {
			t.Logf("%s: %s", tc.name, got)
		}
	}
}

// Ensure that the law of intersections foresees the disaster, before any entry is lost: 1 can commit with 4 and 5 and 2 can win
// with 3.
func TestLaws_intersections(t *testing.T) {
	for faults, want := range map[rules.Set]string{{}: "", {rules.TwoChanges: true}: "could both get a quorum"} {
		c := newCluster([]memberID{1, 2, 3}, []memberID{4, 5}, func(o *raft.Options) {
			o.Dropped, o.StrictReconfig = faults, false
		})
		c.elect(1)
		c.tick(2)
		c.only(1, 4, 5)
		c.change(1, consensus.ChangePromote, testMember(4))
		c.change(1, consensus.ChangePromote, testMember(5))
		c.settle()
		l := newLaws()
		l.intersections(c)
		if !strings.Contains(l.broken, want) || (want == "") != (l.broken == "") {
			t.Errorf("%+v: broken %q, want %q", faults, l.broken, want)
		}
	}
}

// only lets messages pass between the members of one group.
func (c *cluster) only(group ...memberID) {
	clear(c.blocked)
	for _, a := range c.nodes {
		for _, b := range c.nodes {
			c.blocked[[2]memberID{a.id, b.id}] = !contains(group, a.id) || !contains(group, b.id)
		}
	}
}

func contains(ids []memberID, id memberID) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}

// lead makes id lead, as far as others let it: no pre-vote is refused for the sake of a leader that seems alive.
func (c *cluster) lead(id memberID, group ...memberID) {
	for _, n := range c.nodes {
		for _, other := range c.nodes {
			if contains(group, n.id) {
				n.step(raft.Unreachable{Member: other.id})
			}
		}
	}
	for range 4 {
		c.node(id).step(raft.Campaign{})
		c.settle()
	}
}

// changeInOldTerm is Ongaro's example of 2015. 1 appends an addition that only it and the newcomer hold. 2 leads the next term,
// and removes 1 before an entry of its term has committed, on 2 and 3 alone: a majority of {2, 3, 4}. Then 1 leads with 4 and
// 5, a majority of {1, 2, 3, 4, 5}. No voter is in both.
func changeInOldTerm(c *cluster) {
	c.only(1, 5)
	c.change(1, consensus.ChangePromote, testMember(5))
	c.settle()
	c.only(2, 3, 4)
	for _, id := range []memberID{2, 3, 4} {
		c.node(id).step(raft.Unreachable{Member: 1})
	}
	c.node(2).step(raft.Campaign{})
	for !leads(c.node(2)) && len(c.net) > 0 {
		c.deliverFirst()
	}
	c.only(2, 3)
	c.change(2, consensus.ChangeRemove, consensus.Member{ID: 1})
	c.settle()
	c.propose(2, "theirs")
	c.settle()
	c.tick(1, 2, 3)
	c.only(1, 4, 5)
	c.node(1).step(raft.Tick{})
	c.tick(30, 1, 4, 5)
	c.lead(1, 1, 4, 5)
}

func leads(n *node) bool { return n.replica.Status().Role == raft.Leader }

// twoChanges adds 4 and 5 at once by two changes that each differ by one voter: {1, 4, 5} and {2, 3} are disjoint.
func twoChanges(c *cluster) {
	c.only(1, 4, 5)
	c.change(1, consensus.ChangePromote, testMember(4))
	c.change(1, consensus.ChangePromote, testMember(5))
	c.propose(1, "ours")
	c.settle()
	c.only(2, 3)
	c.lead(2, 2, 3)
	c.propose(2, "theirs")
	c.settle()
}

// countLearners commits on the leader and two learners, of which no candidate will ask a vote.
func countLearners(c *cluster) {
	c.only(1, 4, 5)
	c.propose(1, "ours")
	c.settle()
	c.only(2, 3)
	c.lead(2, 2, 3)
}

// countSelf commits the removal of 1, and an entry after it, on 1 and 2, where {2, 3, 4} are to decide. 3 and 4 have the
// removal too, not the entry, and are a majority of those.
func countSelf(c *cluster) {
	for _, id := range []memberID{2, 3, 4} {
		c.blocked[[2]memberID{id, 1}] = true // their acknowledgements are late
	}
	c.change(1, consensus.ChangeRemove, consensus.Member{ID: 1})
	c.settle()
	c.only(1, 2)
	c.propose(1, "ours")
	c.settle()
	c.tick(2, 1, 2)
	c.only(3, 4)
	c.lead(3, 3, 4)
}

// unionOfJoint goes from {1, 2, 3} to {1, 4, 5}. {1, 4, 5} are three of five, and {2, 3} still a majority of the old voters.
func unionOfJoint(c *cluster) {
	c.only(1, 4, 5)
	c.request(1, consensus.ChangeRequest{
		Steps:    append(steps(consensus.ChangePromote, 4, 5), steps(consensus.ChangeRemove, 2, 3)...),
		Protocol: consensus.ProtocolJoint,
	})
	c.propose(1, "ours")
	c.settle()
	c.only(2, 3)
	c.lead(2, 2, 3)
}
