package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a voter whose record never came into the log agrees with the leader again although proposals come so fast that
// its pool is never empty: it must not hand its error on from each record to the next.
func TestReplica_record_drift(t *testing.T) {
	const rounds = 60
	applied := map[consensus.ProposalID]bool{}
	options := raft.Defaults(2)
	options.ElectionTicks, options.HeartbeatTicks = 10, 1
	options.Fast = raft.FastOptions{
		Footprint: func(payload []byte) consensus.Footprint {
			return consensus.Footprint{Leases: []int64{int64(payload[0])}}
		},
		State: func(id consensus.ProposalID) fast.ProposalState {
			if applied[id] {
				return fast.ProposalApplied
			}
			return fast.ProposalUnknown
		},
	}
	r, err := raft.New(options, raft.Restored{
		Hard: consensus.HardState{Term: 2, Commit: 1}, Applied: 1,
		Base: consensus.SnapshotMeta{Position: position{Index: 1, Term: 1}, Config: testConfig([]memberID{1, 2, 3, 4, 5}, nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var last position
	var verdict consensus.Verdict
	step := func(input raft.Input) {
		out := r.Step(input)
		for out.Seq != 0 || len(out.Apply) > 0 {
			for _, m := range append(out.Send, out.SendAfter...) {
				if m.Kind == consensus.MsgRecorded {
					verdict = m.Verdicts[0]
				}
			}
			next := []raft.Input{raft.Persisted{Seq: out.Seq}}
			for i := range out.Apply {
				e := &out.Apply[i]
				applied[e.Proposal] = true
				next = append(next, raft.Applied{Index: e.Index, Revision: e.ExactRevision})
			}
			out = r.Step(next...)
		}
		for _, m := range append(out.Send, out.SendAfter...) {
			if m.Kind == consensus.MsgRecorded {
				verdict = m.Verdicts[0]
			}
		}
	}
	logged := func(e entry) {
		before := last
		if before.Index == 0 {
			before = position{Index: 1, Term: 1}
		}
		e.Index, e.Term = before.Index+1, 2
		step(raft.Receive{Message: message{
			Kind: consensus.MsgAppend, From: 1, To: 2, Term: 2, Prev: before, Commit: before.Index, Entries: []entry{e},
		}})
		last = e.Position()
	}
	command := func(i int) consensus.Proposal {
		id := consensus.ProposalID{Session: consensus.SessionID{Member: 3, Number: 1}, Sequence: uint64(i + 1)}
		return consensus.Proposal{Kind: consensus.EntryCommand, ID: id, Payload: []byte{byte(i)}}
	}
	record := func(i int) consensus.Verdict {
		verdict = consensus.Verdict{}
		step(raft.Receive{Message: message{
			Kind: consensus.MsgRecord, From: 3, To: 2, Term: 2, Config: r.InForce().ID, Proposals: []consensus.Proposal{command(i)},
		}})
		return verdict
	}
	logged(entry{Kind: consensus.EntryNoop})
	logged(entry{Kind: consensus.EntryNoop})
	if got := record(0); got.Revision != 1 {
		t.Fatalf("the one that the leader never heard of: %+v", got)
	}
	agreed := 0
	for i := 1; i <= rounds; i++ {
		if got := record(i); got.Revision == uint64(i) {
			agreed++
		}
		if i > 1 { // so that the pool always holds one
			p := command(i - 1)
			logged(entry{Kind: p.Kind, Proposal: p.ID, Payload: p.Payload, ExactRevision: uint64(i - 1)})
		}
		if i == 5 {
			logged(entry{Kind: consensus.EntryAbort, Proposal: command(0).ID})
		}
	}
	if agreed < rounds/2 {
		t.Errorf("the voter agreed with the leader in %d of %d rounds", agreed, rounds)
	}
}
