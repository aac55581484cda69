package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// waitedIn has a cluster note what commits and reads waited for.
func waitedIn(c *cluster) (commits, reads map[memberID]consensus.Waited) {
	commits, reads = map[memberID]consensus.Waited{}, map[memberID]consensus.Waited{}
	c.check = func(n *node, out *raft.Output) {
		if out.Commit.Upto > 0 {
			commits[n.id] = out.Commit.Waited
		}
		if len(out.Reads) > 0 {
			reads[n.id] = out.ReadsWaited
		}
	}
	return commits, reads
}

// Ensure that a commit names the member whose acknowledgement completed the quorum, with what that says of its disk; that
// followers are told; and that acknowledgements which were not needed are named by none.
func TestReplica_Step_commitWaited(t *testing.T) {
	for _, last := range []memberID{2, 3} {
		c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, nil)
		c.elect(1)
		c.tick(2)
		commits, _ := waitedIn(c)
		c.node(1).step(raft.Propose{Proposals: []consensus.Proposal{proposalOf(1, "a")}})
		passes := func(from memberID) func(m *message) bool {
			return func(m *message) bool {
				if m.Kind == consensus.MsgAppendReply {
					m.DiskTook = uint32(10 * m.From)
				}
				return m.From == 1 && m.Kind == consensus.MsgAppend && len(m.Entries) > 0 || m.From == from
			}
		}
		first := 5 - last // the other one of 2 and 3
		held := c.hold(passes(first))
		if len(commits) > 0 {
			t.Fatalf("committed by two of five: %v", commits)
		}
		c.net = append(c.net, held...)
		held = c.hold(passes(last))
		if got := commits[1]; got != (consensus.Waited{WaitedFor: last, DiskTook: uint32(10 * last)}) {
			t.Errorf("member %v was the last: the leader waited for %+v", last, got)
		}
		c.net = append(c.net, held...)
		c.settle() // the acknowledgements of 4 and 5 come now
		for _, id := range []memberID{2, 3, 4, 5} {
			if got := commits[id]; got.WaitedFor != last || got.DiskTook != uint32(10*last) {
				t.Errorf("member %v was the last: member %v was told of %+v", last, id, got)
			}
		}
		if got := commits[1].WaitedFor; got != last {
			t.Errorf("member %v was the last: the leader says %v later", last, got)
		}
	}
}

// hold delivers what passes, and returns the rest, which is still under way.
func (c *cluster) hold(pass func(m *message) bool) (held []message) {
	c.deliverOnly(func(m *message) bool {
		if pass(m) {
			return true
		}
		held = append(held, *m)
		return false
	})
	return held
}

// Ensure that a follower knows what a commit waited for if the heartbeat that tells of it overtakes the entries, and that it does
// not take that for a later commit's.
func TestReplica_Step_commitWaited_overtaken(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.tick(2)
	commits, _ := waitedIn(c)
	f := c.node(2)
	at, term := f.replica.Status().LastIndex, f.replica.Status().Term
	entry := consensus.Entry{Index: at + 1, Term: term, Kind: consensus.EntryCommand, Payload: []byte("a")}
	told := consensus.Waited{WaitedFor: 3, DiskTook: 4, AllTook: 5}
	hear := func(m message) {
		m.From, m.To, m.Term = 1, 2, term
		f.step(raft.Receive{Message: m})
	}
	hear(message{Kind: consensus.MsgHeartbeat, Commit: at + 1, Waited: told})
	hear(message{Kind: consensus.MsgAppend, Prev: consensus.Position{Index: at, Term: term}, Entries: []consensus.Entry{entry}})
	hear(message{Kind: consensus.MsgHeartbeat, Commit: at + 1})
	if commits[2] != told {
		t.Errorf("waited for %+v, want %+v", commits[2], told)
	}
	next := entry
	next.Index++
	hear(message{Kind: consensus.MsgAppend, Prev: entry.Position(), Entries: []consensus.Entry{next}, Commit: at + 2})
	if commits[2] != (consensus.Waited{}) {
		t.Errorf("the next commit waited for %+v, which the leader did not say", commits[2])
	}
}

// Ensure that the leader's own disk is named if it is the last.
func TestReplica_Step_commitWaited_ownDisk(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.tick(2)
	leader := c.node(1).replica
	out := leader.Step(raft.Propose{Proposals: []consensus.Proposal{proposalOf(1, "a")}})
	last := leader.Status().LastIndex
	ack := message{Kind: consensus.MsgAppendReply, From: 2, To: 1, Term: leader.Status().Term, Round: out.Send[0].Round,
		Match: consensus.Position{Index: last, Term: leader.Status().LastTerm}, Waited: consensus.Waited{DiskTook: 5}}
	if early := leader.Step(raft.Receive{Message: ack}); early.Commit.Upto != 0 {
		t.Fatal("committed by one of three")
	}
	done := leader.Step(raft.Persisted{Seq: out.Seq, Took: 70})
	if done.Commit != (raft.Commit{Upto: last, Waited: consensus.Waited{WaitedFor: 1, DiskTook: 70}}) || done.Ready != last {
		t.Errorf("got %+v, ready up to %d; want that it waited for its own disk, up to %d", done.Commit, done.Ready, last)
	}
}

// Ensure that a read names the member whose echo completed the round, at the leader and at a follower that asks it.
func TestReplica_Step_readWaited(t *testing.T) {
	for _, reader := range []memberID{1, 2} {
		c := newCluster([]memberID{1, 2, 3, 4, 5}, nil, nil)
		c.elect(1)
		c.tick(2)
		_, reads := waitedIn(c)
		c.node(reader).step(raft.Read{IDs: []uint64{100}})
		from := func(a, b memberID) func(m *message) bool {
			return func(m *message) bool { return m.From == a || m.From == b }
		}
		held := c.hold(from(1, reader))
		c.net = append(c.net, held...)
		held = c.hold(from(1, 3))
		if reader == 1 {
			c.net = append(c.net, held...)
			c.hold(from(1, 4))
		}
		want := memberID(4)
		if reader == 2 { // its question counts as its echo
			want = 3
		}
		if got, answered := reads[reader]; !answered || got.WaitedFor != want || got.DiskTook != 0 {
			t.Errorf("a read of member %v waited for %+v (%t), want member %v", reader, got, answered, want)
		}
	}
}
