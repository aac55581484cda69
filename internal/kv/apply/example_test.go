package apply_test

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// A proposal that was retried is in the log twice and applied once.
func ExampleMachine_Apply() {
	eng, _ := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	_ = apply.Bootstrap(eng, 1, consensus.Config{Voters: []consensus.MemberID{9}})
	m, _ := apply.Open(eng, apply.Options{})

	id := proposals(9, 1)
	commands := []struct {
		proposal consensus.ProposalID
		command  kv.Command
	}{
		{id(1), kv.Command{SessionOpen: &kv.SessionOpenOp{Member: 9, Number: 1}}},
		{id(2), put("greeting", "hello")},
		{id(2), put("greeting", "hello")},
		{proposals(9, 2)(7), put("greeting", "from a session that nobody opened")},
	}
	var log []consensus.Entry
	for i, c := range commands {
		log = append(log, consensus.Entry{Index: consensus.Index(i + 1), Term: 1, Kind: consensus.EntryCommand,
			Proposal: c.proposal, Payload: c.command.Append(nil)})
	}
	results, _ := m.Apply(log)
	for _, res := range results {
		fmt.Println(res.Revision, res.Err)
	}
	found, _ := m.Store().Get([]byte("greeting"))
	fmt.Printf("%s, version %d, applied up to %v\n", found.Value, found.Version, m.Applied())
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 2 <nil>
	// 2 kv: session unknown or retired
	// hello, version 1, applied up to 4.1
}
