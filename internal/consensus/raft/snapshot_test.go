package raft_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// behindSnapshot returns a cluster of three whose leader is 1 and whose member 3 lacks entries that the leader's log no
// longer holds. offered is called when the leader first offers 3 the snapshot that was streamed to it.
func behindSnapshot(offered func(c *cluster)) *cluster {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.isolate(3, true)
	c.propose(1, "a", "b", "c")
	c.settle()
	c.node(1).step(raft.Compact{Index: c.node(1).store.position.Index})
	c.isolate(3, false)
	done := false
	c.check = func(_ *node, out *raft.Output) {
		isOffer := func(m message) bool { return m.Kind == consensus.MsgSnapshotOffer }
		if !done && slices.ContainsFunc(out.Send, isOffer) {
			done = true
			offered(c)
		}
	}
	c.tick(3)
	return c
}

// Ensure that a follower that dies after it received a snapshot does not keep the leader's log from being compacted for as long
// as it is away.
func TestReplica_Compact_followerDiedBeforeInstalling(t *testing.T) {
	c := behindSnapshot(func(c *cluster) { c.isolate(3, true) })
	leader := c.node(1)
	c.tick(2 * leader.c.opts(1).ElectionTicks)
	for range 20 {
		c.propose(1, "d")
		c.settle()
	}
	c.tick(1)
	applied := leader.store.position.Index
	leader.step(raft.Compact{Index: applied})
	if base := leader.replica.Base().Position.Index; base != applied {
		t.Errorf("the log begins after %d, want %d", base, applied)
	}
	// The leader replicates to the follower all the same once it is back.
	c.isolate(3, false)
	c.tick(2 * leader.c.opts(1).ElectionTicks)
	if got := c.node(3).store.position.Index; got < applied {
		t.Errorf("the follower has applied %d, want %d", got, applied)
	}
}

// Ensure that a follower that is busy installing a snapshot still echoes the leader's rounds: with the third member down the
// leader would otherwise lose its quorum.
func TestReplica_snapshotOffer_echoesWhileInstalling(t *testing.T) {
	c := behindSnapshot(func(c *cluster) { c.isolate(2, true); c.node(3).slowInstall = true })
	leader := c.node(1)
	term := leader.replica.Term()
	c.tick(3 * c.opts(1).ElectionTicks)
	if leader.replica.Status().Role != raft.Leader || leader.replica.Term() != term {
		t.Fatalf("the leader of term %d stepped down while its follower installs a snapshot", term)
	}
	c.node(3).slowInstall = false
	c.tick(3)
	if got, want := c.node(3).store.position, leader.store.position; got != want {
		t.Errorf("the follower has applied %v, want %v", got, want)
	}
}

// Ensure that a leader streams one snapshot to a follower that is silent meanwhile, instead of a new one each time that it
// becomes active again: those of a large store would never arrive.
func TestReplica_needSnapshot_onceWhileStreaming(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.isolate(3, true)
	c.propose(1, "a", "b", "c")
	c.settle()
	leader := c.node(1)
	leader.step(raft.Compact{Index: leader.store.position.Index})
	leader.slowStream = true
	asked := 0
	c.check = func(_ *node, out *raft.Output) { asked += len(out.NeedSnapshot) }
	for range 3 {
		c.isolate(3, false)
		c.tick(c.opts(1).ElectionTicks)
		c.isolate(3, true)
		c.tick(2 * c.opts(1).ElectionTicks)
	}
	if asked != 1 {
		t.Errorf("the leader asked for %d snapshots, want 1", asked)
	}
}

// outrun lets the leader write and compact while the snapshot to member 3 makes no progress, and fails the test if the leader's
// log grows beyond its bound.
func outrun(t *testing.T, c *cluster, writes int) {
	t.Helper()
	leader := c.node(1)
	limit := c.opts(1).MaxSnapshotLogBytes + 1000
	for i := range writes {
		c.propose(1, payload(i))
		c.settle()
		leader.step(raft.Compact{Index: leader.store.position.Index})
		c.tick(1)
		if held := leader.replica.Counts().Log.Held; held > limit {
			t.Fatalf("after %d writes the leader holds %d bytes of log, want at most %d", i, held, limit)
		}
	}
	if leader.replica.Counts().Log.Outrun == 0 {
		t.Fatal("no snapshot was given up")
	}
	if leader.replica.Status().Role != raft.Leader {
		t.Fatal("the leader stepped down")
	}
}

// Ensure that the log that a leader keeps while a snapshot is under way is bounded: a newer snapshot replaces it, ever more
// rarely, and the follower catches up in the end.
func TestReplica_Compact_outrunsSnapshots(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.MaxSnapshotLogBytes = 3000 })
	c.elect(1)
	c.isolate(3, true)
	c.propose(1, "a", "b", "c")
	c.settle()
	leader := c.node(1)
	leader.step(raft.Compact{Index: leader.store.position.Index})
	leader.slowStream = true
	c.isolate(3, false)
	outrun(t, c, 1000)
	// 20 writes fill the log; the pauses between are 10, 20, ..., 640 ticks.
	if leader.streamed < 4 || leader.streamed > 8 {
		t.Errorf("%d snapshots were begun in 1,000 ticks", leader.streamed)
	}
	leader.slowStream = false
	c.tick(64 * c.opts(1).ElectionTicks)
	if got, want := c.node(3).store.position, leader.store.position; got != want {
		t.Errorf("the follower has applied %v, want %v", got, want)
	}
}

// Ensure the same while a follower takes long to install a snapshot that it has received.
func TestReplica_Compact_outrunsInstallations(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.MaxSnapshotLogBytes = 3000 })
	c.elect(1)
	c.isolate(3, true)
	c.propose(1, "a", "b", "c")
	c.settle()
	leader, follower := c.node(1), c.node(3)
	leader.step(raft.Compact{Index: leader.store.position.Index})
	follower.slowInstall = true
	c.isolate(3, false)
	outrun(t, c, 200)
	follower.slowInstall = false
	c.tick(64 * c.opts(1).ElectionTicks)
	if got, want := follower.store.position, leader.store.position; got != want {
		t.Errorf("the follower has applied %v, want %v", got, want)
	}
}

// Ensure that a snapshot on its way to one follower is not given up because an older one to another keeps too much of the log.
func TestReplica_Compact_outrunsTheOldestFirst(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, func(o *raft.Options) { o.MaxSnapshotLogBytes = 60000 })
	c.elect(1)
	c.settle()
	leader := c.node(1)
	leader.slowStream = true
	write := func(n int) {
		for i := range n {
			c.propose(1, payload(i))
			c.settle()
			if i%10 == 0 {
				c.tick(1)
			}
		}
	}
	c.isolate(4, true)
	c.isolate(5, true)
	write(30)
	leader.compact(leader.store.position.Index)
	c.isolate(4, false)
	c.cut(4, 5)
	c.tick(3)
	write(150)
	c.isolate(5, false)
	c.tick(3)
	for leader.replica.Counts().Log.Outrun == 0 {
		if leader.store.position.Index > 5000 {
			t.Fatal("no snapshot is given up")
		}
		write(1)
		leader.compact(leader.store.position.Index - 10)
	}
	if got := leader.replica.Counts().Log.Outrun; got != 1 {
		t.Errorf("%d snapshots are given up at once", got)
	}
	for _, e := range leader.events {
		if e, ok := e.(raft.SnapshotOutrun); ok && e.Follower != 4 {
			t.Errorf("the younger snapshot, of %v, is given up", e.Follower)
		}
	}
}

// Ensure that entries which were under way before a snapshot was needed are not sent again when the snapshot, or the entries
// before them, have arrived.
func TestReplica_leaveSnapshot_entriesOnTheirWay(t *testing.T) {
	for _, byEntries := range []bool{true, false} {
		c := newCluster([]memberID{1, 2, 3}, nil, nil)
		c.elect(1)
		c.settle()
		leader, slow := c.node(1), &narrowLink{c: c, from: 1, to: 3}
		matched := leader.store.position
		c.propose(1, "a")
		slow.settle()
		leader.step(raft.Compact{Index: leader.store.position.Index})
		c.isolate(2, true)
		c.propose(1, "b")
		slow.settle()
		sent := slow.bytes
		if len(slow.queue) != 2 || leader.replica.Base().Position != leader.store.position {
			t.Fatalf("%d appends are on their way, the log begins after %v", len(slow.queue), leader.replica.Base().Position)
		}
		status := leader.replica.Status()
		streamed := false
		c.check = func(_ *node, out *raft.Output) { streamed = streamed || len(out.NeedSnapshot) > 0 }
		leader.step(raft.Receive{Message: message{
			Kind: consensus.MsgAppendReply, From: 3, To: 1, Term: status.Term, Config: status.ConfigID, Reject: true,
			Round: slow.queue[1].Round, Mismatch: consensus.Mismatch{Refused: leader.store.position, Hint: matched}}})
		if !streamed {
			t.Fatal("no snapshot is needed")
		}
		if byEntries {
			c.deliver(slow.queue[0])
			slow.queue = slow.queue[1:]
		}
		slow.settle()
		for range 3 {
			slow.tick()
		}
		if slow.bytes != sent {
			t.Errorf("by entries %v: %d bytes of entries were sent again", byEntries, slow.bytes-sent)
		}
		slow.perTick = 1 << 20
		c.isolate(2, false)
		for range 10 {
			slow.tick()
		}
		if got, want := c.node(3).store.position, leader.store.position; got != want || want == matched {
			t.Errorf("by entries %v: member 3 has applied %v, the leader %v", byEntries, got, want)
		}
	}
}
