package node_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/node"
)

const commitDelay = 4 * time.Millisecond

// answerTime is how long the follower takes to answer.
const answerTime = time.Millisecond

// gatherer is the leader of two voters. Its disk takes no time.
type gatherer struct {
	t       *testing.T
	node    *node.Node
	now     time.Time
	next    uint64 // sequence of what is proposed
	batches int
	entries []consensus.Entry
	refused int
	round   uint64 // of reads, that was asked for last
	taken   int    // inputs that the core took
	inbox   []raft.Input
	answers []answer // in their order
}

type answer struct {
	due     time.Time
	message raft.Input
}

func newGatherer(t *testing.T, delay time.Duration) *gatherer {
	t.Helper()
	g := &gatherer{t: t, now: time.Unix(1_000_000, 0)}
	config := consensus.Config{
		Voters:  []consensus.MemberID{1, 2},
		Members: []consensus.Member{{ID: 1, PeerURLs: []string{"http://1"}}, {ID: 2, PeerURLs: []string{"http://2"}}},
	}
	options := raft.Defaults(1)
	options.Fast = raft.FastOptions{Footprint: kv.PayloadFootprint, Revises: kv.Revises}
	var err error
	g.node, err = node.New(node.Options{Raft: options, FirstSession: 1, RetryTicks: 300, CommitDelay: delay},
		raft.Restored{Base: consensus.Founding(config)}, node.Ports{
			Send: g.send, Persist: g.persist, Taken: func(inputs []raft.Input) { g.taken += len(inputs) },
			Apply: func(entries []consensus.Entry) {
				g.inbox = append(g.inbox, raft.Applied{Index: entries[len(entries)-1].Index})
			},
			Install: func(consensus.SnapshotMeta) {}, SendSnapshot: func(consensus.MemberID) {},
			Configure: func(raft.ConfigInForce) {}, Observe: func([]raft.Event) {},
			Distance: func(consensus.MemberID) (time.Duration, bool) { return 0, false },
		})
	if err != nil {
		t.Fatal(err)
	}
	g.step(raft.Campaign{})
	g.pass(10 * answerTime)
	if g.node.Replica().Leader() != 1 {
		t.Fatal("does not lead")
	}
	g.batches, g.entries = 0, nil
	return g
}

// step feeds inputs, and all that comes of them.
func (g *gatherer) step(inputs ...raft.Input) {
	g.node.Step(g.now, inputs...)
	for len(g.inbox) > 0 {
		inputs, g.inbox = g.inbox, nil
		g.node.Step(g.now, inputs...)
	}
}

func (g *gatherer) persist(request node.Persist) {
	if len(request.Batch.Entries) > 0 {
		g.batches++
		g.entries = append(g.entries, request.Batch.Entries...)
	}
	g.send(request.After)
	if request.Seq != 0 {
		g.inbox = append(g.inbox, raft.Persisted{Seq: request.Seq})
	}
}

// send answers for member 2.
func (g *gatherer) send(messages []consensus.Message) {
	for i := range messages {
		m := &messages[i]
		g.round = max(g.round, m.Round)
		reply := consensus.Message{From: 2, To: 1, Term: m.Term, Config: m.Config}
		switch m.Kind {
		case consensus.MsgPreVote:
			reply.Kind = consensus.MsgPreVoteReply
		case consensus.MsgVote:
			reply.Kind = consensus.MsgVoteReply
		case consensus.MsgAppend:
			reply.Kind, reply.Match = consensus.MsgAppendReply, m.Prev
			if n := len(m.Entries); n > 0 {
				reply.Match = consensus.Position{Term: m.Entries[n-1].Term, Index: m.Entries[n-1].Index}
			}
			reply.Durable = reply.Match.Index
		case consensus.MsgProposeReply:
			g.refused += len(m.Refusals)
			continue
		default:
			continue
		}
		g.answers = append(g.answers, answer{g.now.Add(answerTime), raft.Receive{Message: reply}})
	}
}

// propose is a message of member 2 with one proposal.
func (g *gatherer) propose() raft.Input {
	g.next++
	command := &kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v")}}
	return raft.Receive{Message: consensus.Message{
		Kind: consensus.MsgPropose, From: 2, To: 1, Term: g.node.Replica().Term(), Config: g.node.Replica().InForce().ID,
		Proposals: []consensus.Proposal{{
			ID: consensus.ProposalID{Session: consensus.SessionID{Member: 2, Number: 77}, Sequence: g.next}, Kind: consensus.EntryCommand, Payload: command.Append(nil),
		}},
	}}
}

// pass lets time pass: the follower answers, and the node does what it says is due.
func (g *gatherer) pass(d time.Duration) {
	end := g.now.Add(d)
	for {
		due, waits := g.node.Next()
		if len(g.answers) > 0 && (!waits || g.answers[0].due.Before(due)) {
			if g.answers[0].due.After(end) {
				break
			}
			came := g.answers[0]
			g.answers, g.now = g.answers[1:], came.due
			g.step(came.message)
			continue
		}
		if !waits || due.After(end) {
			break
		}
		g.now = due
		g.step()
	}
	g.now = end
}

// stream lets member 2 propose each half a millisecond.
func (g *gatherer) stream(n int) {
	for range n {
		g.step(g.propose())
		g.pass(500 * time.Microsecond)
	}
}

// Ensure that the leader writes together what is proposed one by one, all of it and in order, without longer waits than it may.
func TestNode_gathers(t *testing.T) {
	g := newGatherer(t, commitDelay)
	g.stream(400)
	if g.batches > 100 {
		t.Errorf("%d proposals in %d batches", len(g.entries), g.batches)
	}
	g.pass(commitDelay)
	if len(g.entries) != 400 {
		t.Fatalf("%d of 400 are in the log", len(g.entries))
	}
	for i := range g.entries {
		if g.entries[i].Proposal.Sequence != uint64(i+1) {
			t.Fatalf("entry %d is proposal %d", i, g.entries[i].Proposal.Sequence)
		}
	}
}

// Ensure that without a delay each proposal is written when it comes.
func TestNode_gathers_not(t *testing.T) {
	g := newGatherer(t, 0)
	g.stream(400)
	if g.batches != 400 || g.node.Gathering() {
		t.Errorf("400 proposals in %d batches; gathering: %v", g.batches, g.node.Gathering())
	}
}

// newBatch returns a leader that waits for more proposals from now on: it has seen many, and has just begun a batch.
func newBatch(t *testing.T) *gatherer {
	t.Helper()
	g := newGatherer(t, commitDelay)
	g.stream(100)
	g.pass(2 * commitDelay)
	g.step(g.propose()) // begins a batch
	return g
}

// Ensure that what waits when the leader is not one any more is refused, so that its proposer asks the next one.
func TestNode_gathers_deposed(t *testing.T) {
	g := newBatch(t)
	g.step(g.propose())
	g.step(g.propose())
	if !g.node.Gathering() || g.node.Waiting() {
		t.Fatalf("gathering: %v; the loop would spin: %v", g.node.Gathering(), g.node.Waiting())
	}
	written := len(g.entries)
	g.step(raft.Receive{Message: consensus.Message{
		Kind: consensus.MsgHeartbeat, From: 2, To: 1, Term: g.node.Replica().Term() + 1,
	}})
	g.step()
	if g.refused != 2 || g.node.Gathering() || len(g.entries) != written {
		t.Errorf("%d of 2 refused, gathering: %v, %d entries more", g.refused, g.node.Gathering(), len(g.entries)-written)
	}
}

// Ensure that what the leader itself proposes waits likewise, and that a read does not.
func TestNode_gathers_own(t *testing.T) {
	g := newBatch(t)
	before := g.batches
	command := &kv.Command{Put: &kv.PutOp{Key: []byte("own"), Value: []byte("v")}}
	if _, err := g.node.Propose(command, ignored{}); err != nil {
		t.Fatal(err)
	}
	g.step(g.propose())
	asked := g.round
	g.node.Read(func() {})
	g.step()
	if g.batches != before || !g.node.Gathering() {
		t.Errorf("%d batches more; gathering: %v", g.batches-before, g.node.Gathering())
	}
	if g.round == asked {
		t.Error("a read waits, too")
	}
	g.now, _ = g.node.Next()
	if g.step(); g.batches != before+1 {
		t.Errorf("%d batches more when it was due", g.batches-before)
	}
}

// Ensure that messages which propose nothing are not kept, however many a peer sends while proposals wait.
func TestNode_gathers_empty(t *testing.T) {
	g := newBatch(t)
	g.step(g.propose())
	before := g.taken
	empty := raft.Receive{Message: consensus.Message{
		Kind: consensus.MsgPropose, From: 2, To: 1, Term: g.node.Replica().Term(), Config: g.node.Replica().InForce().ID,
	}}
	g.step(empty, empty, empty)
	if !g.node.Gathering() || g.taken != before+3 {
		t.Errorf("gathering: %v; the core took %d of 3", g.node.Gathering(), g.taken-before)
	}
}

type ignored struct{}

func (ignored) Complete(kv.Result, error) {}

// Ensure that a proposal of the fast path does not wait for more where one to the leader does: the voters have it already.
func TestNode_Step_fastProposalsAreNotGathered(t *testing.T) {
	for kind, waits := range map[consensus.MessageKind]bool{consensus.MsgPropose: true, consensus.MsgFastPropose: false} {
		g := newGatherer(t, 20*time.Millisecond)
		g.stream(100)
		for !g.node.Gathering() {
			g.step(g.propose())
		}
		input := g.propose().(raft.Receive)
		input.Message.Kind = kind
		before := g.taken
		if g.step(input); (g.taken == before) != waits {
			t.Errorf("%v: the core was given %d inputs, and it waits: %t", kind, g.taken-before, waits)
		}
	}
}
