package raft_test

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// A lone voter leads at once, and a command is applied once it is durable: no other member is asked.
func ExampleReplica() {
	r, err := raft.New(raft.Defaults(1), raft.Restored{Base: consensus.SnapshotMeta{
		Config: consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1, Name: "a"}}},
	}})
	if err != nil {
		panic(err)
	}
	out := r.Step(raft.Tick{})
	for _, e := range out.Events {
		fmt.Println(e)
	}
	out = r.Step(raft.Persisted{Seq: out.Seq})
	fmt.Printf("apply %v\n", out.Apply[0].Position())
	out = r.Step(raft.Propose{Proposals: []consensus.Proposal{
		{Kind: consensus.EntryCommand, Proposer: 1, Payload: []byte("put k v")},
	}})
	fmt.Printf("persist request %d, %d to apply\n", out.Seq, len(out.Apply))
	out = r.Step(raft.Persisted{Seq: out.Seq})
	fmt.Printf("apply %v %q\n", out.Apply[0].Position(), out.Apply[0].Payload)
	// Output:
	// became candidate at term 1
	// follows leader 1 at term 1
	// became leader at term 1, no-op at 1
	// apply 1.1
	// persist request 2, 0 to apply
	// apply 2.1 "put k v"
}
