package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// cordoned returns a cluster of voters that member 2 leads and in which member 1 is cordoned.
func cordoned(t *testing.T, voters []memberID, adapt func(*raft.Options)) *cluster {
	t.Helper()
	c := newCluster(voters, nil, adapt)
	c.elect(2)
	c.tick(3)
	c.mark(t, consensus.ChangeCordon, 1)
	return c
}

// mark cordons a member, or uncordons it.
func (c *cluster) mark(t *testing.T, kind consensus.ChangeKind, id memberID) {
	t.Helper()
	c.change(c.leader().id, kind, consensus.Member{ID: id})
	c.tick(3)
	if m, _ := c.settledMember(id); m.Cordoned != (kind == consensus.ChangeCordon) {
		t.Fatalf("%v of %v is not in force", kind, id)
	}
}

func (c *cluster) settledMember(id memberID) (consensus.Member, bool) {
	config := c.leader().replica.InForce().Config
	return config.Member(id)
}

// ledBy waits for a leader and returns it.
func (c *cluster) ledBy(t *testing.T, ticks int) memberID {
	t.Helper()
	for range ticks {
		if leader := c.leader(); leader != nil {
			return leader.id
		}
		c.tick(1)
	}
	t.Fatalf("nobody leads after %d ticks", ticks)
	return consensus.NoMember
}

func (c *cluster) kill(id memberID) { c.node(id).crash() }

// Ensure that a leader that is cordoned hands over soon, also after all members were restarted, and that it may lead again once
// it is uncordoned.
func TestReplica_cordoned_leaderHandsOver(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	laws := newLaws()
	laws.watch(c)
	c.elect(1)
	c.propose(1, "a")
	c.tick(3)
	c.change(1, consensus.ChangeCordon, consensus.Member{ID: 1})
	c.tick(3)
	first := c.ledBy(t, 1)
	if first == 1 || c.node(1).replica.Status().Role != raft.Follower {
		t.Fatalf("%v leads", first)
	}
	for _, n := range c.nodes {
		n.crash()
		n.start()
	}
	if id := c.ledBy(t, 20); id == 1 {
		t.Error("the mark was lost by a restart")
	}
	c.leader().step(raft.Transfer{To: 1})
	c.tick(2)
	if id := c.ledBy(t, 20); id == 1 {
		t.Error("a transfer went to the cordoned member")
	}
	c.tick(3)
	c.mark(t, consensus.ChangeUncordon, 1)
	c.leader().step(raft.Transfer{To: 1})
	c.tick(3)
	if id := c.ledBy(t, 20); id != 1 {
		t.Errorf("%v leads; the member is not cordoned any more", id)
	}
	if laws.broken != "" {
		t.Error(laws.broken)
	}
}

// Ensure that another voter is elected whenever one can be, whichever waits are drawn, and whether or not the connections to
// the leader break with it.
func TestReplica_cordoned_othersGoFirst(t *testing.T) {
	for seed := range uint64(60) {
		adapt := func(o *raft.Options) { o.Seed, o.LeaderLease = seed, seed%3 == 0 }
		c := cordoned(t, []memberID{1, 2, 3, 4, 5}, adapt)
		for range 2 {
			dead := c.leader().id
			c.kill(dead)
			for _, n := range c.nodes {
				if n.replica != nil && seed%2 == 0 {
					n.step(raft.Unreachable{Member: dead})
				}
			}
			if id := c.ledBy(t, 80); id == 1 {
				t.Fatalf("seed %d: the cordoned member leads, and another could", seed)
			}
			c.tick(3)
		}
	}
}

// Ensure that the cordoned member leads while the others lag, and hands over once one has caught up.
func TestReplica_cordoned_leadsWhileNobodyElseCan(t *testing.T) {
	c := cordoned(t, []memberID{1, 2, 3}, nil)
	c.isolate(3, true)
	c.propose(2, "only 1 and 2 have this")
	c.tick(2)
	c.kill(2)
	c.isolate(3, false)
	if id := c.ledBy(t, 200); id != 1 {
		t.Fatalf("%v leads without the log", id)
	}
	c.tick(5)
	if id := c.ledBy(t, 1); id != 3 {
		t.Errorf("%v leads, and 3 has caught up", id)
	}
	c.kill(3)
	c.tick(100)
	if c.leader() != nil {
		t.Fatal("one of three leads")
	}
}

// Ensure that cordoning all voters has no effect: one of them leads, and hands over to no other.
func TestReplica_cordoned_allOfThem(t *testing.T) {
	c := cordoned(t, []memberID{1, 2, 3}, nil)
	c.mark(t, consensus.ChangeCordon, 3)
	c.change(2, consensus.ChangeRemove, consensus.Member{ID: 2})
	c.tick(40)
	led := c.ledBy(t, 100)
	term := c.leader().replica.Term()
	c.tick(200)
	if id := c.ledBy(t, 1); id != led || c.leader().replica.Term() != term {
		t.Errorf("%v led in term %d, now %v in term %d", led, term, id, c.leader().replica.Term())
	}
}

// Ensure that a leader without a target chooses a voter that is not cordoned, and that a cordoned member ignores a needless
// transfer.
func TestReplica_cordoned_transfers(t *testing.T) {
	c := cordoned(t, []memberID{1, 2, 3}, nil)
	c.isolate(3, true)
	c.propose(2, "3 lags")
	c.tick(1)
	c.isolate(3, false)
	c.leader().step(raft.Transfer{To: consensus.NoMember})
	c.tick(5)
	if id := c.ledBy(t, 40); id != 3 {
		t.Errorf("leadership went to %v", id)
	}
	leader := c.leader()
	for _, force := range []bool{false, true} {
		c.node(1).step(raft.Receive{Message: message{
			Kind: consensus.MsgTimeoutNow, From: leader.id, To: 1, Term: leader.replica.Term(), Force: force,
		}})
		c.settle()
		if leads := c.leader().id == 1; leads != force {
			t.Errorf("told to campaign, forced %v: it leads: %v", force, leads)
		}
	}
}

// Ensure that a leader whose disk hangs hands over to a cordoned member only if there is no other.
func TestReplica_cordoned_diskStalls(t *testing.T) {
	for _, tc := range []struct {
		name string
		cut  bool
	}{{"another is there", false}, {"they are the only ones", true}} {
		c := cordoned(t, []memberID{1, 2, 3, 4, 5}, nil)
		c.mark(t, consensus.ChangeCordon, 4)
		c.mark(t, consensus.ChangeCordon, 5)
		c.isolate(3, tc.cut)
		c.tick(12)
		c.node(2).slowDisk = true
		c.propose(2, "a")
		c.tick(13)
		if id := c.ledBy(t, 1); (id == 3) == tc.cut || id == 2 {
			t.Errorf("%s: %v leads", tc.name, id)
		}
	}
}

// Ensure that a cordoned voter that alone can be elected campaigns, though another one without pre-vote raises the term again
// and again.
func TestReplica_cordoned_onlyCandidate(t *testing.T) {
	c := cordoned(t, []memberID{1, 2, 3}, func(o *raft.Options) { o.PreVote = o.ID != 3 })
	c.isolate(3, true)
	c.propose(2, "a")
	c.tick(2)
	c.kill(2)
	c.isolate(3, false)
	if id := c.ledBy(t, 20*c.opts(1).ElectionTicks); id != 1 {
		t.Errorf("%v leads with the shorter log", id)
	}
}

// Ensure that a spared member, whose state is wrong, does not keep leading because all others are cordoned.
func TestReplica_cordoned_othersSpared(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.tick(3)
	c.mark(t, consensus.ChangeCordon, 2)
	c.mark(t, consensus.ChangeCordon, 3)
	for _, n := range c.nodes {
		n.step(raft.Spare{Members: []memberID{1}})
	}
	c.tick(4 * c.opts(1).ElectionTicks)
	if id := c.ledBy(t, 4*c.opts(1).ElectionTicks); id == 1 {
		t.Error("the member that is spared leads on")
	}
}

// Ensure that a cordoned voter takes over at once when a leader that leaves calls it, though it first has to apply the change
// by which that leader leaves.
func TestReplica_cordoned_calledByTheLast(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.tick(3)
	c.mark(t, consensus.ChangeCordon, 2)
	c.mark(t, consensus.ChangeCordon, 3)
	c.node(2).holdApply, c.node(3).holdApply = true, true
	request := consensus.ChangeOne(consensus.ChangeRemove, consensus.Member{ID: 1})
	request.Protocol = consensus.ProtocolApply
	c.request(1, request)
	c.settle()
	c.tick(3)
	for _, id := range []memberID{2, 3} {
		c.node(id).holdApply = false
		c.node(id).apply(len(c.node(id).toApply))
	}
	c.settle()
	if id := c.ledBy(t, 2); id == 1 {
		t.Error("the removed leader leads on")
	}
}
