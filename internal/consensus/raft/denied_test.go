package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that a follower which lost entries that it acknowledged counts in no quorum any more, and that an old rejection that
// arrives late does not pass for such a loss.
func TestReplica_handleReply_denied(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	for range 5 {
		c.propose(1, "x")
		c.settle()
	}
	leader := c.node(1).replica
	at := func() (match consensus.Index, active bool) {
		for _, p := range leader.Status().Progress {
			if p.ID == 2 {
				return p.Match, p.RecentActive
			}
		}
		t.Fatal("the leader does not know 2")
		return 0, false
	}
	match, active := at()
	if match == 0 || !active {
		t.Fatalf("nothing was acknowledged: match %d, active %v", match, active)
	}
	reject := func(round uint64) raft.Output {
		return leader.Step(raft.Receive{Message: consensus.Message{
			Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: leader.Term(), Reject: true, Round: round,
			Mismatch: consensus.Mismatch{Refused: consensus.Position{Index: match, Term: leader.Term()}, Hint: consensus.Position{Index: 1, Term: 1}},
		}})
	}
	denied := func(out raft.Output) bool {
		for _, e := range out.Events {
			if _, ok := e.(raft.Denied); ok {
				return true
			}
		}
		return false
	}
	if denied(reject(0)) {
		t.Error("a rejection without a later round was taken for a denial")
	}
	c.tick(2*c.opts(1).HeartbeatTicks, 1)
	rounds := uint64(0)
	for round := uint64(1); round < 1000 && rounds == 0; round++ {
		if denied(reject(round)) {
			rounds = round
		}
	}
	if rounds == 0 {
		t.Fatal("a follower that denies what it acknowledged is believed")
	}
	if _, active := at(); active {
		t.Error("it is still active")
	}
	if out := leader.Step(raft.Receive{Message: consensus.Message{
		Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: leader.Term(), Match: consensus.Position{Index: match, Term: leader.Term()}, Round: rounds,
	}}); denied(out) {
		t.Error("it was reported twice")
	}
	if _, active := at(); active {
		t.Error("an acknowledgement made it count again")
	}
}

// Ensure that a member campaigns only where its configuration binds it to its own data directory, or binds no member at all.
func TestReplica_campaign_bound(t *testing.T) {
	own, other := consensus.StorageID{1}, consensus.StorageID{2}
	for _, row := range []struct {
		name   string
		bound  consensus.StorageID
		others consensus.StorageID
		faults rules.Set
		want   bool
	}{
		{"nobody is bound", consensus.NoStorage, consensus.NoStorage, rules.Set{}, true},
		{"bound to its own", own, other, rules.Set{}, true},
		{"others are bound", consensus.NoStorage, other, rules.Set{}, false},
		{"bound to another", other, other, rules.Set{}, false},
		{"bound to another, rule broken", other, other, rules.Set{rules.IgnoreBinding: true}, true},
	} {
		options := raft.Defaults(1)
		options.Storage, options.Dropped, options.PreVote = own, row.faults, false
		config := consensus.Config{Voters: []memberID{1, 2, 3}, Members: []consensus.Member{
			{ID: 1, Storage: row.bound}, {ID: 2, Storage: row.others}, {ID: 3, Storage: row.others}}}
		r, err := raft.New(options, raft.Restored{Base: consensus.Founding(config)})
		if err != nil {
			t.Fatal(err)
		}
		r.Step(raft.Campaign{})
		if got := r.Status().Role == raft.Candidate; got != row.want {
			t.Errorf("%s: stands for election %v, want %v", row.name, got, row.want)
		}
	}
}

// Ensure that a rejection from before the installation of a snapshot, which arrives late, does not pass for a loss of entries
// in the snapshot.
func TestReplica_handleReply_notDeniedAfterSnapshot(t *testing.T) {
	c := behindSnapshot(func(*cluster) {})
	leader := c.node(1).replica
	c.tick(4 * c.opts(1).HeartbeatTicks)
	match := consensus.Index(0)
	for _, p := range leader.Status().Progress {
		if p.ID == 3 {
			match = p.Match
		}
	}
	if match == 0 {
		t.Fatal("the snapshot is not acknowledged")
	}
	out := leader.Step(raft.Receive{Message: consensus.Message{
		Kind: consensus.MsgAppendReply, From: 3, To: 1, Term: leader.Term(), Reject: true, Round: 1,
		Mismatch: consensus.Mismatch{Refused: consensus.Position{Index: match, Term: leader.Term()}, Hint: consensus.Position{Index: 1, Term: leader.Term()}},
	}})
	for _, e := range out.Events {
		if d, ok := e.(raft.Denied); ok {
			t.Errorf("an old rejection is taken for a denial: %v", d)
		}
	}
}

// Ensure that a follower that is probed below its log's base, and hints at the base, gets a stream again if it answers the
// probe: a refusal of an append sent before the probe does not tell which later appends were lost.
func TestReplica_handleReply_probeBelowBase(t *testing.T) {
	for _, row := range []struct {
		before uint64 // rounds
		state  string
	}{{0, "replicate"}, {1, "probe"}} {
		c := newCluster([]memberID{1, 2, 3}, nil, nil)
		c.elect(1)
		c.propose(1, "a", "b")
		c.settle()
		n, s := c.node(1), c.node(1).replica.Status()
		n.step(raft.Unreachable{Member: 3})
		probed := uint64(0)
		for i := range c.net {
			if m := &c.net[i]; m.To == 3 && m.Kind == consensus.MsgAppend {
				probed = m.Round
			}
		}
		c.net = nil
		n.step(raft.Receive{Message: message{
			Kind: consensus.MsgAppendReply, From: 3, To: 1, Term: s.Term, Config: s.ConfigID, Reject: true, Round: probed - row.before,
			Mismatch: consensus.Mismatch{Refused: position{Index: s.LastIndex - 1, Term: s.Term}, Hint: position{Index: s.LastIndex, Term: s.LastTerm}},
		}})
		for _, p := range n.replica.Status().Progress {
			if p.ID == 3 && p.State != row.state {
				t.Errorf("%d rounds before the probe, %d: %s, want %s", row.before, probed, p.State, row.state)
			}
		}
	}
}
