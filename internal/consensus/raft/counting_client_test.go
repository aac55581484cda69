package raft_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// A client that counts acceptances by itself (the fast path, as a model): it sends a record, tagged with the term and the id of
// the configuration that it knows, to all voters of that configuration. The leader appends the command in the same step. The
// write is complete, and the client reports it to the user, once a superquorum of those voters, with the leader, has accepted.
// A new leader recovers the records of its predecessors that enough of a majority hold.

// record is an attempt that a voter promises to hand over to the next leader.
type record struct {
	command string
	term    consensus.Term
	config  consensus.ConfigID
}

// careless are rules of these witnesses that a test switches off.
type careless struct {
	// unbound voters accept a record whatever configuration it names, and so does the leader.
	unbound bool
	// early leaders accept before the configuration in force has committed.
	early bool
}

// witnesses are the records of all voters; they survive crashes.
type witnesses struct {
	c    *cluster
	held map[memberID][]record
	careless
}

func newWitnesses(c *cluster, r careless) *witnesses {
	return &witnesses{c: c, held: map[memberID][]record{}, careless: r}
}

// accept asks one voter; it answers with the configuration that it has in force.
func (w *witnesses) accept(id memberID, r record) (ok bool, current consensus.ConfigID) {
	n := w.c.node(id)
	if n.replica == nil {
		return false, consensus.ConfigID{}
	}
	s := n.replica.Status()
	bound := w.unbound || r.config == s.ConfigID
	if r.term != s.Term || !bound {
		return false, s.ConfigID
	}
	if s.Role == raft.Leader {
		if !w.early && (!s.ConfigCommitted || !s.TermStarted || s.Config.IsJoint()) {
			return false, s.ConfigID
		}
		w.c.propose(id, r.command)
	}
	w.held[id] = append(w.held[id], r)
	return true, s.ConfigID
}

// write sends a command to the members in reach, as a client that knows config does, and reports whether the client may report
// the write to the user.
func (w *witnesses) write(command string, term consensus.Term, leader memberID, config *raft.ConfigInForce, reach ...memberID) bool {
	accepted, led := 0, false
	for _, id := range config.Config.Voters {
		if !slices.Contains(reach, id) {
			continue
		}
		if ok, _ := w.accept(id, record{command, term, config.ID}); ok {
			accepted++
			led = led || id == leader
		}
	}
	return led && accepted >= quorum.Super(len(config.Config.Voters))
}

// writeOrRetry is the whole client: refused for its configuration, it asks the leader for the current one and tries again.
func (w *witnesses) writeOrRetry(command string, leader memberID, config raft.ConfigInForce, reach ...memberID) (done bool, tries int) {
	for tries = 1; tries < 5; tries++ {
		s := w.c.node(leader).replica.Status()
		if w.write(command, s.Term, leader, &config, reach...) {
			return true, tries
		}
		w.c.settle()
		config = w.c.node(leader).replica.InForce()
	}
	return false, tries
}

// recover returns the commands that a new leader takes over: its own log, and the records that enough of the given majority
// hold under the configuration that its log ends with.
func (w *witnesses) recover(id memberID, majority ...memberID) []string {
	n := w.c.node(id)
	config := n.replica.InForce()
	var commands []string
	for i := range n.log {
		if n.log[i].Kind == consensus.EntryCommand {
			commands = append(commands, string(n.log[i].Payload))
		}
	}
	seen := map[string]int{}
	for _, voter := range majority {
		for _, r := range w.held[voter] {
			if r.config != config.ID {
				continue
			}
			seen[r.command]++
			if seen[r.command] == quorum.Recovery(len(config.Config.Voters)) && !slices.Contains(commands, r.command) {
				commands = append(commands, r.command)
			}
		}
	}
	return commands
}

// Ensure that a write that a client completed, by counting acceptances itself, survives the leader's death while a fourth
// member joins: the voters refuse the configuration that the client knew and tell it which one is in force; it tries again, and
// the user sees nothing of it. Were records not bound to a configuration, the write would be lost.
func TestModel_countingClient_memberJoins(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rules careless
		tries int
		lost  bool
	}{
		{"bound to the configuration", careless{}, 2, false},
		{"bound to nothing", careless{unbound: true}, 1, true},
	} {
		c := newCluster([]memberID{1, 2, 3}, []memberID{4}, nil)
		c.elect(1)
		c.tick(3)
		w := newWitnesses(c, tc.rules)
		before := c.node(1).replica.InForce() // the configuration that the client knows
		c.change(1, consensus.ChangePromote, testMember(4))
		c.settle()
		c.isolate(1, true) // for the other members; the client still reaches it
		done, tries := w.writeOrRetry("x", 1, before, 1, 2, 3)
		if !done || tries != tc.tries {
			t.Fatalf("%s: done %v after %d tries", tc.name, done, tries)
		}
		c.node(1).crash()
		leader := c.successor(2, 3, 4)
		if got := w.recover(leader, 2, 3, 4); slices.Contains(got, "x") == tc.lost {
			t.Errorf("%s: %v goes on with %v", tc.name, leader, got)
		}
	}
}

// successor lets a member of a group, cut off from the others, win an election.
func (c *cluster) successor(group ...memberID) memberID {
	c.only(group...)
	for range 100 {
		c.tick(1, group...)
		for _, id := range group {
			if n := c.node(id); n.replica != nil && leads(n) {
				return id
			}
		}
	}
	panic(fmt.Sprintf("none of %v gets elected", group))
}

// Ensure that the configuration must have committed: 1 appends the addition of 4, only 4 gets it, and three of four accept a
// write. 2 and 3 know nothing of a fourth member; two of three lead, and see the write once.
func TestModel_countingClient_uncommittedConfig(t *testing.T) {
	for _, early := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3}, []memberID{4}, nil)
		c.elect(1)
		c.tick(3)
		w := newWitnesses(c, careless{early: early, unbound: early})
		c.only(1, 4)
		c.change(1, consensus.ChangePromote, testMember(4))
		c.settle()
		config := c.node(1).replica.InForce()
		done := w.write("x", c.node(1).replica.Term(), 1, &config, 1, 2, 4)
		if done != early {
			t.Fatalf("early %v: done %v", early, done)
		}
		c.node(1).crash()
		leader := c.successor(2, 3)
		if got := w.recover(leader, 2, 3); slices.Contains(got, "x") {
			t.Errorf("early %v: %v goes on with %v: nobody should see it often enough", early, leader, got)
		}
	}
}

// Ensure that configurations must be named by their entries. 1 leads term 2 and appends the addition of 4, which only 4 gets. 2
// leads term 3 and commits the addition of 5 instead. By a counter both are "the second configuration": a client that learned
// of it from 4 counts the acceptances of 1, 2 and 4; once 2 has died, only one voter of the committed one has the record.
func TestModel_countingClient_reusedConfigID(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		c := newCluster([]memberID{1, 2, 3}, []memberID{4, 5}, func(o *raft.Options) { o.Dropped[rules.ReuseConfigIDs] = reuse })
		c.elect(1)
		c.tick(3)
		w := newWitnesses(c, careless{})
		c.only(1, 4)
		c.change(1, consensus.ChangePromote, testMember(4))
		c.settle()
		theirs := c.node(4).replica.InForce()
		for _, id := range []memberID{2, 3} {
			c.node(id).step(raft.Unreachable{Member: 1})
		}
		c.only(2, 3, 5)
		c.lead(2, 2, 3)
		c.change(2, consensus.ChangePromote, testMember(5))
		c.settle()
		s := c.node(2).replica.Status()
		if s.Role != raft.Leader || !s.ConfigCommitted || len(s.Config.Voters) != 4 {
			t.Fatalf("2 is %v with %s", s.Role, describeConfig(&s.Config))
		}
		// 1 and 4 learn of the term, from a pre-vote's answer or a heartbeat, before they get the log.
		for _, id := range []memberID{1, 4} {
			c.node(id).step(receive(message{Kind: consensus.MsgHeartbeat, From: 2, To: id, Term: s.Term}))
		}
		if same := theirs.ID == s.ConfigID; same != reuse {
			t.Fatalf("reuse %v: configurations %v and %v", reuse, theirs.ID, s.ConfigID)
		}
		c.only()
		done := w.write("x", s.Term, 2, &theirs, 1, 2, 4)
		if done != reuse {
			t.Fatalf("reuse %v: done %v", reuse, done)
		}
		if !done { // the client asks the leader, and members that hold the same entry accept
			if done, _ = w.writeOrRetry("x", 2, theirs, 2, 3, 5); !done {
				t.Fatal("the retry is not done")
			}
		}
		c.node(2).crash()
		leader := c.successor(1, 3, 5)
		if got := w.recover(leader, 1, 3, 5); slices.Contains(got, "x") == reuse {
			t.Errorf("reuse %v: %v goes on with %v", reuse, leader, got)
		}
	}
}
