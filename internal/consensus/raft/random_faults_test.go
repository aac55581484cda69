package raft_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that a reader needs new answers for each question: here it has the old ones of a majority that has gone on without it
// and its leader.
func TestReplica_Step_oldLogEnds(t *testing.T) {
	for _, old := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, func(o *raft.Options) { o.Dropped[rules.CountOldAnswers] = old })
		c.infer = true
		l := newLaws()
		l.watch(c)
		c.elect(1)
		read := func(id uint64) {
			l.asked[[2]uint64{2, id}] = l.highest
			c.node(2).step(raft.Read{IDs: []uint64{id}, Spread: true})
			c.settle()
		}
		read(1)
		if l.reads != 1 {
			t.Fatalf("%d reads were answered while all is well", l.reads)
		}
		for _, id := range []memberID{3, 4, 5} {
			c.cut(id, 1)
			c.cut(id, 2)
			c.node(id).step(raft.Unreachable{Member: 1})
		}
		c.node(3).step(raft.Campaign{})
		c.settle()
		c.propose(3, "theirs")
		c.settle()
		read(2)
		if broken := strings.Contains(l.broken, "linearizable read"); broken != old || l.broken != "" && !old {
			t.Errorf("old answers count: %t, broken: %q", old, l.broken)
		}
	}
}

// Ensure the same for faults that need a certain order of events: it is played with the fault and without.
func TestReplica_Step_faultsOfOneTurn(t *testing.T) {
	play := func(faults rules.Set, turn func(c *cluster, l *laws)) string {
		c := newCluster([]memberID{1, 2, 3}, []memberID{4, 5}, func(o *raft.Options) { o.Dropped = faults })
		l := newLaws()
		l.watch(c)
		c.elect(1)
		for _, id := range []memberID{2, 3} {
			for _, other := range []memberID{1, 4, 5} {
				c.cut(id, other)
			}
		}
		turn(c, l)
		return l.broken
	}
	deposed := func(c *cluster) {
		c.node(2).step(raft.Unreachable{Member: 1})
		c.node(3).step(raft.Unreachable{Member: 1})
		c.tick(3, 2)
		c.propose(2, "theirs")
		c.settle()
	}
	for _, tc := range []struct {
		name   string
		faults rules.Set
		turn   func(c *cluster, l *laws)
		want   string
	}{
		{"a commit that only learners hold", rules.Set{rules.CountLearners: true}, func(c *cluster, _ *laws) {
			c.propose(1, "ours")
			c.settle()
			deposed(c)
		}, "leader completeness"},
		{"a read from a deposed leader", rules.Set{rules.SkipReadRound: true}, func(c *cluster, l *laws) {
			deposed(c)
			l.asked[[2]uint64{1, 7}] = l.highest
			c.node(1).step(raft.Read{IDs: []uint64{7}})
			c.settle()
		}, "linearizable read"},
	} {
		if got := play(rules.Set{}, tc.turn); got != "" {
			t.Errorf("%s: without the fault: %s", tc.name, got)
		}
		if got := play(tc.faults, tc.turn); !strings.Contains(got, tc.want) {
			t.Errorf("%s: with the fault, broken: %q", tc.name, got)
		}
	}
}
