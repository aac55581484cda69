package raft_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// narrow bounds the entries that may wait to be applied.
func narrow(o *raft.Options) {
	o.MaxApplyingBytes, o.MaxUnappliedBytes, o.MaxMessageBytes, o.MaxInflightBytes = 1000, 4000, 500, 2000
}

func payload(i int) string { return fmt.Sprintf("%03d%s", i, strings.Repeat("x", 97)) }

// watchApplying fails the test if more entries are handed out than allowed.
func watchApplying(t *testing.T, c *cluster) {
	c.done = func(n *node, _ *raft.Output) {
		if got := n.replica.Counts().Log.Applying; got > c.opts(n.id).MaxApplyingBytes {
			t.Fatalf("member %v: %d bytes are handed out", n.id, got)
		}
	}
}

// Ensure that a follower that does not apply gets no more entries than its credit, keeps no more than it may, and costs the
// others nothing; that it answers the leader all the while; and that it gets everything once it applies again.
func TestReplica_handOut_stoppedFollower(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, narrow)
	watchApplying(t, c)
	c.elect(1)
	c.settle()
	n := c.node(3)
	n.holdApply = true
	most := 0
	for i := range 300 {
		c.propose(1, payload(i))
		c.settle()
		if i%10 == 0 {
			c.tick(1)
		}
		most = max(most, n.replica.Counts().Log.Held)
	}
	leader := c.node(1)
	if leader.replica.Status().Role != raft.Leader || len(leader.refusals) > 0 || leader.store.position.Index < 300 {
		t.Fatalf("the others have applied %d, %d refusals, leader %v", leader.store.position.Index, len(leader.refusals), c.leader())
	}
	if limit := c.opts(3).MaxUnappliedBytes + 3*c.opts(3).MaxMessageBytes; most > limit {
		t.Errorf("the follower kept %d bytes of log, want at most %d", most, limit)
	}
	if n.replica.Counts().Log.Withheld == 0 {
		t.Error("it took everything")
	}
	c.isolate(2, true) // so that the leader needs it
	c.tick(3 * c.opts(3).ElectionTicks)
	if c.leader() == nil || c.leader().id != 1 || leader.replica.Status().Term != n.replica.Term() {
		t.Fatal("it does not answer the leader while it takes no entries")
	}
	n.holdApply = false
	n.apply(len(n.toApply))
	c.settle()
	c.tick(20)
	if got, want := n.store.position, leader.store.position; got != want {
		t.Errorf("it has applied %v, want %v", got, want)
	}
}

// Ensure that a leader that does not apply refuses commands at its bound, gives way to another one, and continues once it
// applies.
func TestReplica_admit_stoppedLeader(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, narrow)
	watchApplying(t, c)
	c.elect(1)
	c.settle()
	n := c.node(1)
	n.holdApply = true
	for i := range 100 {
		c.propose(1, payload(i))
		c.settle()
	}
	counts := n.replica.Counts().Log
	limit := c.opts(1).MaxUnappliedBytes + 300 // and the no-op, and the last command
	if counts.Held > limit {
		t.Errorf("the leader kept %d bytes of log, want at most %d", counts.Held, limit)
	}
	if len(n.refusals) == 0 || n.refusals[0].Reason != consensus.ReasonBusy {
		t.Fatalf("refused: %v", n.refusals)
	}
	c.tick(5 * c.opts(1).ElectionTicks)
	leader := c.leader()
	if leader == nil || leader.id == 1 {
		t.Fatal("a leader that applies nothing, and so refuses everything, still leads")
	}
	c.propose(leader.id, "after")
	c.settle()
	n.holdApply = false
	n.apply(len(n.toApply))
	c.settle()
	c.tick(5)
	if got, want := n.store.position, leader.store.position; got != want || leader.store.commands[len(leader.store.commands)-1] != "after" {
		t.Errorf("it has applied %v, want %v", got, want)
	}
}

// Ensure that uncommitted entries keep no member from taking entries: a new leader's no-op has to reach members that hold more
// than they may keep of the entries that its predecessor could not commit.
func TestReplica_fits_uncommitted(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
		o.MaxMessageBytes = 500
		if o.ID == 3 {
			o.MaxUnappliedBytes = 1000
		}
	})
	c.elect(1)
	c.settle()
	c.isolate(3, true)
	c.node(2).slowDisk = true // it holds all entries, and acknowledges none
	for i := range 50 {
		c.propose(1, payload(i))
	}
	c.settle()
	c.node(1).crash()
	c.isolate(3, false)
	c.node(2).slowDisk = false
	c.node(2).sync(len(c.node(2).pending))
	c.tick(6*c.opts(1).ElectionTicks, 2, 3)
	leader := c.leader()
	if leader == nil || leader.id == 1 {
		t.Fatal("nobody leads")
	}
	for _, n := range []*node{c.node(2), c.node(3)} {
		if s := n.replica.Status(); s.Commit != s.LastIndex || n.store.position.Index != s.LastIndex {
			t.Errorf("member %v has %d to %d, %d committed, %d applied", n.id, s.FirstIndex, s.LastIndex, s.Commit, n.store.position.Index)
		}
	}
}

// Ensure that a leader without a quorum takes no more than it may leave uncommitted.
func TestReplica_admit_uncommitted(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.MaxUncommittedBytes = 2000 })
	c.elect(1)
	c.settle()
	c.isolate(1, true)
	for i := range 50 {
		c.propose(1, payload(i))
	}
	n := c.node(1)
	if held := n.replica.Counts().Log.Held; held > 2000+300 || len(n.refusals) < 35 {
		t.Errorf("%d bytes, %d refusals", held, len(n.refusals))
	}
	for _, refusal := range n.refusals {
		if refusal.Reason != consensus.ReasonBusy {
			t.Fatal(refusal.Reason)
		}
	}
}

// Ensure that the size that the log counts is that of its entries, whatever happens to it.
func TestReplica_Counts_log(t *testing.T) {
	for seed := range uint64(20) {
		x := newWalk(seed, profileOf("messages"), rules.Set{}, narrowest)
		for range 3000 {
			x.act()
			for _, n := range x.nodes {
				if n.replica == nil {
					continue
				}
				s := n.replica.Status()
				want := raftlog.Bytes{}
				for i := range n.log {
					e := &n.log[i]
					if e.Index >= s.FirstIndex {
						want.Held += e.SizeBytes()
					}
					if e.Index > s.Applied && e.Index <= s.Commit {
						want.Ready += e.SizeBytes()
					}
				}
				got := n.replica.Counts().Log
				if got.Held != want.Held || got.Ready != want.Ready || got.Applying > got.Ready || got.Applying < 0 {
					t.Fatalf("seed %d, member %v: %+v, want %+v", seed, n.id, got.Bytes, want)
				}
			}
		}
	}
}

// narrowest lets members keep next to nothing.
func narrowest(o *raft.Options) {
	o.MaxApplyingBytes, o.MaxUnappliedBytes, o.MaxSnapshotLogBytes = 200, 600, 600
}

// Ensure that leadership does not run in a circle where the stores of all members hang: each leader gets three election
// timeouts to make progress.
func TestReplica_applyStalls_everywhere(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, narrow)
	c.elect(1)
	c.settle()
	for _, n := range c.nodes {
		n.holdApply = true
	}
	for i := range 100 {
		c.propose(1, payload(i))
		c.settle()
	}
	c.tick(3 * c.opts(1).ElectionTicks)
	from := c.node(1).replica.Status().Term
	c.tick(12 * c.opts(1).ElectionTicks)
	switch terms := c.node(1).replica.Status().Term - from; {
	case terms == 0:
		t.Error("a leader that gets no further leads on")
	case terms > 5:
		t.Errorf("%d terms in twelve election timeouts", terms)
	}
}
