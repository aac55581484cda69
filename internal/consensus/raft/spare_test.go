package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// spare gives all members, as the shell of each does, the members that are to leave leadership to others.
func (c *cluster) spare(members ...consensus.MemberID) {
	for _, n := range c.nodes {
		n.step(raft.Spare{Members: members})
	}
	c.tick(3)
}

// Ensure that a spared leader hands over, that no transfer goes to it, and that of three voters it is not the one elected next,
// until it is spared no more.
func TestReplica_spared(t *testing.T) {
	for round := range 5 {
		c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) { o.Seed += uint64(round) })
		laws := newLaws()
		laws.watch(c)
		c.elect(1)
		c.propose(1, "a")
		c.tick(3)
		c.spare(1)
		if id := c.ledBy(t, 5); id == 1 {
			t.Fatal("a spared leader goes on")
		}
		c.leader().step(raft.Transfer{To: 1})
		c.tick(2)
		if id := c.ledBy(t, 20); id == 1 {
			t.Fatal("a transfer went to the spared member")
		}
		if status := c.leader().replica.Status(); status.Heir() == 1 {
			t.Error("it is shown as who could lead next")
		}
		c.kill(c.leader().id)
		c.tick(40)
		if id := c.ledBy(t, 40); id == 1 {
			t.Fatal("the spared member was elected, and another could have been")
		}
		c.spare()
		c.leader().step(raft.Transfer{To: 1})
		c.tick(3)
		if id := c.ledBy(t, 20); id != 1 {
			t.Errorf("%v leads although 1 is spared no more", id)
		}
	}
}

// Ensure that a spared member which alone has an acknowledged write leads until another one has it: no write is lost, and no
// member waits for ever.
func TestReplica_spared_hasTheOnlyLog(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	laws := newLaws()
	laws.watch(c)
	c.elect(3)
	c.tick(3)
	c.kill(2)
	c.propose(3, "acknowledged by 1 and 3")
	c.tick(3)
	c.kill(3)
	c.node(2).start()
	c.spare(1)
	led := false
	for range 200 {
		c.tick(1)
		if l := c.leader(); l != nil {
			led = led || l.id == 1
			if l.id == 2 {
				break
			}
		}
	}
	if l := c.leader(); !led || l == nil || l.id != 2 {
		t.Fatalf("1 led: %v; now leads %v, want 2, after 1 gave it the log", led, l)
	}
}
