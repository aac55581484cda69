package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that a follower which promised patience to a leader with a lease keeps the promise in the next term as well: a
// candidate may have raised the term while the leader's last message to the follower, or its echo, was under way. Of three
// members, 2 gets messages of leader 1 in term 2, then learns of term 3 by a late answer to its pre-vote, then is asked for its
// vote.
func TestReplica_Step_promiseOutlivesTerm(t *testing.T) {
	const grant = "a vote"
	for _, tc := range []struct {
		name  string
		lease bool
		vote  message
		wait  int
		want  string
	}{
		{"in the new term", true, message{Term: 3}, 0, ""},
		{"in a newer term", true, message{Term: 4}, 0, ""},
		{"just before the promise ends", true, message{Term: 3}, 9, ""},
		{"once the promise has ended", true, message{Term: 3}, 10, grant},
		{"a vote that a leader asked for", true, message{Term: 3, Force: true}, 0, grant},
		{"without a lease", false, message{Term: 3}, 0, grant},
	} {
		c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.LeaderLease = tc.lease })
		n := c.node(2)
		say := func(m message) {
			n.step(raft.Receive{Message: m})
			for n.drain() {
			}
		}
		say(message{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 2, Round: 1})
		say(message{Kind: consensus.MsgPreVoteReply, From: 3, To: 2, Term: 3, Reject: true})
		for range tc.wait {
			n.step(raft.Tick{})
		}
		c.net = nil
		tc.vote.Kind, tc.vote.From, tc.vote.To, tc.vote.Last = consensus.MsgVote, 3, 2, position{Index: 1, Term: 1}
		say(tc.vote)
		got := ""
		for i := range c.net {
			if m := &c.net[i]; m.Kind == consensus.MsgVoteReply && !m.Reject {
				got = grant
			}
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Ensure that the only voter of a configuration that has not committed waits for the end of the lease that a leader of the one
// before may hold. 1 removes itself, and 2, which decides alone from there on, restarts before 1 learns so.
func TestReplica_Step_loneVoterKeepsPromise(t *testing.T) {
	c := newCluster([]memberID{1, 2}, nil, func(o *raft.Options) { o.LeaderLease = true })
	l := newLaws()
	l.watch(c)
	c.elect(1)
	c.tick(5)
	c.change(1, consensus.ChangeRemove, testMember(1))
	entry := c.net[0]
	c.net = nil
	two := c.node(2)
	c.deliver(entry)
	for two.drain() {
	}
	late := c.net // the answer
	c.net = nil
	two.crash()
	two.start()
	alone := func(ticks int) {
		for range ticks {
			two.step(raft.Tick{})
			for two.drain() {
			}
		}
	}
	alone(1)
	c.propose(2, "x")
	alone(1)
	l.asked[[2]uint64{1, 7}] = l.highest
	c.node(1).step(raft.Read{IDs: []uint64{7}})
	for i := range late {
		c.deliver(late[i])
	}
	c.node(1).drain()
	if l.broken != "" {
		t.Fatal(l.broken)
	}
	c.net = nil // 1 is gone, and its last messages with it
	if alone(c.opts(2).ElectionTicks); two.replica.Leader() != 2 {
		t.Fatal("it waits for ever")
	}
	two.crash()
	two.start()
	if alone(1); two.replica.Leader() != 2 {
		t.Error("it waits although it knows that it alone decides")
	}
}

// Ensure that a leader lease depends on the promise of each follower: members may have other settings while they are restarted
// one by one. Leader 1 is cut off and its connections break. The others elect a leader if they can, and it writes; then 1 is
// read.
func TestReplica_leaseHolds_mixedSettings(t *testing.T) {
	for _, tc := range []struct {
		name  string
		adapt func(o *raft.Options)
		holds bool // the lease answers after a round
	}{
		{"all the same", func(o *raft.Options) { o.LeaderLease = true }, true},
		{"only the leader has a lease", func(o *raft.Options) { o.LeaderLease = o.ID == 1 }, false},
		{"one follower has no lease", func(o *raft.Options) { o.LeaderLease = o.ID != 3 }, true},
		{"the leader's timeout is longer", func(o *raft.Options) {
			o.LeaderLease = true
			if o.ID == 1 {
				o.ElectionTicks = 40
			}
		}, true},
		{"the leader's ticks are longer", func(o *raft.Options) {
			o.LeaderLease, o.TickMicros = true, 1000
			if o.ID == 1 {
				o.TickMicros = 4000
			}
		}, false}, // a promise of two and a half ticks, less granularity and drift, protects nothing
		{"the followers' timeout is longer", func(o *raft.Options) {
			o.LeaderLease = true
			if o.ID != 1 {
				o.ElectionTicks = 40
			}
		}, true},
	} {
		for _, own := range []bool{false, true} {
			c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
				o.ElectionTicks, o.HeartbeatTicks, o.Fast.Footprint = 10, 1, footprintOf
				o.Dropped[rules.OwnLeaseTicks] = own
				tc.adapt(o)
			})
			l := newFastLaws(c)
			c.elect(1)
			c.tick(6)
			c.isolate(1, true)
			c.node(1).step(raft.Read{IDs: []uint64{5}})
			if held := len(c.node(1).reads) > 0; held != tc.holds && !own {
				t.Errorf("%s: the lease holds: %t", tc.name, held)
			}
			for _, id := range []memberID{2, 3} {
				c.node(id).step(raft.Unreachable{Member: 1})
			}
			c.node(2).step(raft.Campaign{})
			c.settle()
			for range 60 {
				leader := c.leader()
				if leader != nil && leader.id != 1 {
					break
				}
				if o := c.opts(1); o.TickMicros > 1000 {
					c.tick(3, 2, 3)
				}
				c.tick(1)
			}
			next := c.leader()
			if next == nil || next.id == 1 {
				t.Fatalf("%s: nobody else is elected", tc.name)
			}
			p := proposalOf(1, "a=W")
			l.invoke(p.ID)
			next.step(raft.Propose{Proposals: []consensus.Proposal{p}})
			c.settle()
			l.ask(c.node(1), 1<<20)
			c.node(1).step(raft.Read{IDs: []uint64{1 << 20}})
			c.settle()
			if l.broken != "" && !own {
				t.Errorf("%s: %s", tc.name, l.broken)
			}
			if stale := tc.name == "the leader's timeout is longer"; own && stale && l.broken == "" {
				t.Errorf("%s: the leader counts its own settings, and nothing is noticed", tc.name)
			}
		}
	}
}

// Ensure that a member which starts again without a lease, or with a shorter timeout, keeps its former promise, and no longer
// than it promised.
func TestReplica_promise_restart(t *testing.T) {
	lease, ticks := true, 30
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.LeaderLease, o.ElectionTicks = lease, ticks })
	c.elect(1)
	c.tick(4)
	if promise := c.node(2).disk.hard.Promise; promise != 30 {
		t.Fatalf("on the disk: %d", promise)
	}
	lease, ticks = false, 10
	c.isolate(1, true)
	for _, id := range []memberID{2, 3} {
		c.node(id).crash()
		c.node(id).start()
	}
	for tick := range 60 {
		c.tick(1, 2, 3)
		if leader := c.leader(); leader != nil && leader.id != 1 {
			if tick < 29 {
				t.Errorf("%v is elected %d ticks after the promise", leader.id, tick+1)
			}
			c.tick(2, 2, 3)
			if promise := c.node(2).disk.hard.Promise; promise != 0 {
				t.Errorf("the promise stays on the disk for ever: %d", promise)
			}
			return
		}
	}
	t.Error("nobody is elected")
}
