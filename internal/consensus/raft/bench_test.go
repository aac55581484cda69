package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// BenchmarkReplica_Step puts batches of 64 proposals through three replicas, until all three hand them out to be applied. Disks
// and network cost nothing here: the protocol alone is measured.
func BenchmarkReplica_Step(b *testing.B) {
	const batch = 64
	var replicas [3]*raft.Replica
	config := testConfig([]memberID{1, 2, 3}, nil)
	for i := range replicas {
		var err error
		replicas[i], err = raft.New(raft.Defaults(memberID(i+1)), raft.Restored{Base: consensus.SnapshotMeta{
			Position: position{Index: 1, Term: 1}, Config: config, ConfigID: consensus.ConfigID{Index: 1, Term: 1},
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	var inboxes [3][]raft.Input
	applied := [3]consensus.Index{}
	run := func() {
		for moved := true; moved; {
			moved = false
			for i, r := range replicas {
				if len(inboxes[i]) == 0 {
					continue
				}
				moved = true
				out := r.Step(inboxes[i]...)
				inboxes[i] = inboxes[i][:0]
				if out.Seq != 0 {
					inboxes[i] = append(inboxes[i], raft.Persisted{Seq: out.Seq})
				}
				if len(out.Apply) > 0 {
					applied[i] = out.Apply[len(out.Apply)-1].Index
					inboxes[i] = append(inboxes[i], raft.Applied{Index: applied[i]})
					if applied[i]%4096 < batch {
						inboxes[i] = append(inboxes[i], raft.Compact{Index: applied[i] - min(applied[i], 1000)})
					}
				}
				for _, list := range [][]message{out.Send, out.SendAfter} {
					for _, m := range list {
						inboxes[m.To-1] = append(inboxes[m.To-1], raft.Receive{Message: m})
					}
				}
			}
		}
	}
	inboxes[0] = append(inboxes[0], raft.Campaign{})
	run()
	proposals := make([]consensus.Proposal, batch)
	payload := make([]byte, 256)
	for i := range proposals {
		proposals[i] = consensus.Proposal{
			ID: consensus.ProposalID{Session: consensus.SessionID{Member: 1}}, Proposer: 1,
			Kind: consensus.EntryCommand, Payload: payload,
		}
	}
	start := applied
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		inboxes[0] = append(inboxes[0], raft.Propose{Proposals: proposals})
		run()
		n += batch
	}
	for i := range applied {
		if got := int(applied[i] - start[i]); got != n {
			b.Fatalf("member %d applied %d of %d", i+1, got, n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/proposal")
}
