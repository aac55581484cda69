package raft_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a vote of a term before that of the installed snapshot does not count in the snapshot's term: the hard state was
// not written again after the installation.
func TestNew_voteOfEarlierTerm(t *testing.T) {
	for _, row := range []struct {
		saved  consensus.Term
		grants bool
	}{{4, false}, {2, true}} {
		base := consensus.Founding(testConfig([]memberID{1, 2, 3}, nil))
		base.Position = position{Index: 5, Term: 4}
		r, err := raft.New(raft.Defaults(1), raft.Restored{Hard: consensus.HardState{Term: row.saved, Vote: 3}, Base: base, Applied: 5})
		if err != nil {
			t.Fatal(err)
		}
		out := r.Step(raft.Receive{Message: message{
			Kind: consensus.MsgVote, From: 2, To: 1, Term: 4, Last: position{Index: 9, Term: 4}, Force: true,
		}})
		replies := append(out.Send, out.SendAfter...)
		if len(replies) != 1 || replies[0].Reject == row.grants {
			t.Errorf("a vote of term %d was saved; the answers in term 4 are %+v", row.saved, replies)
		}
	}
}

// Ensure that the commit index is written with the entries after it: a member that starts again applies the entries up to
// there.
func TestReplica_persist_commitRidesAlong(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.propose(1, "a")
	c.settle()
	n := c.node(1)
	committed := n.replica.Commit()
	if n.disk.hard.Commit >= committed {
		t.Fatalf("the disk knows of commit %d already, written for its own sake", n.disk.hard.Commit)
	}
	c.propose(1, "b")
	n.drain()
	n.sync(len(n.pending))
	if got := n.disk.hard.Commit; got != committed {
		t.Errorf("the disk knows that %d is committed, want %d", got, committed)
	}
}

// Ensure that the messages of a leader leave in their order, though its disk hung while it was elected: a follower takes a
// message that arrives out of order for lost (seed 27550068).
func TestReplica_Step_messagesWaitForTerm(t *testing.T) {
	base := consensus.Founding(testConfig([]memberID{1}, []memberID{2}))
	r, err := raft.New(raft.Defaults(1), raft.Restored{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	var persist []uint64
	step := func(input raft.Input) (sent []message) {
		out := r.Step(input)
		if out.Seq != 0 {
			persist = append(persist, out.Seq)
		}
		for i := range out.SendAfter {
			t.Errorf("after %T a message leaves with the disk: %s", input, describe(&out.SendAfter[i]))
		}
		return out.Send
	}
	for range 3 * raft.Defaults(1).HeartbeatTicks {
		if sent := step(raft.Tick{}); len(sent) > 0 {
			t.Fatalf("left before the term was durable: %s", describe(&sent[0]))
		}
	}
	if r.Status().Role != raft.Leader || len(persist) == 0 {
		t.Fatalf("role %v, %d writes", r.Status().Role, len(persist))
	}
	sent := step(raft.Persisted{Seq: persist[len(persist)-1]})
	if len(sent) < 3 {
		t.Fatalf("%d messages left when the term was durable, want one for each heartbeat at least", len(sent))
	}
	if !slices.IsSortedFunc(sent, func(a, b message) int { return cmp.Compare(a.Round, b.Round) }) {
		t.Errorf("they leave in another order: %+v", sent)
	}
}

// Ensure that a member whose disk hangs before its new term is durable keeps a bounded number of answers to the leader, and
// that the first of them leave when the disk works again.
func TestReplica_Step_diskHangsInNewTerm(t *testing.T) {
	base := consensus.Founding(testConfig([]memberID{1, 2, 3}, nil))
	r, err := raft.New(raft.Defaults(1), raft.Restored{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	var seq uint64
	const most = 4096
	for round := range uint64(4 * most) {
		out := r.Step(receive(message{Kind: consensus.MsgHeartbeat, From: 2, To: 1, Term: 2, Round: round + 1}))
		if len(out.Send) > 0 {
			t.Fatalf("left before the term was durable: %s", describe(&out.Send[0]))
		}
		seq = max(seq, out.Seq)
	}
	sent := r.Step(raft.Persisted{Seq: seq}).Send
	if len(sent) == 0 || len(sent) > most || sent[0].Round != 1 {
		t.Errorf("%d messages waited, the first of round %d", len(sent), sent[0].Round)
	}
}

// Ensure that a member does not answer the messages of one term's leader to the leader of the next one, which came in the same
// Step: a member that only got appends answers once.
func TestReplica_Step_twoTermsAtOnce(t *testing.T) {
	base := consensus.Founding(testConfig([]memberID{1, 2, 3}, nil))
	r, err := raft.New(raft.Defaults(1), raft.Restored{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	out := r.Step(
		receive(message{Kind: consensus.MsgHeartbeat, From: 2, To: 1, Term: 2, Round: 5}),
		receive(message{Kind: consensus.MsgAppend, From: 3, To: 1, Term: 3, Prev: base.Position}),
	)
	done := r.Step(raft.Persisted{Seq: out.Seq})
	answers := slices.Concat(out.Send, out.SendAfter, done.Send, done.SendAfter)
	if len(answers) != 1 || answers[0].Kind != consensus.MsgAppendReply || answers[0].To != 3 || answers[0].Term != 3 {
		t.Errorf("answers %+v", answers)
	}
}
