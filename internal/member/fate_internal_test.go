package member

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Ensure that the loop can ask for the fate of a proposal also when the store that it knows was just closed.
func TestMember_fate_whileStoreIsReplaced(t *testing.T) {
	m := memberOfMachine(t)
	m.data.letGo(nil)
	answer := make(chan raft.Fate, 1)
	go func() {
		answer <- m.fate(consensus.ProposalID{Session: consensus.SessionID{Member: 1, Number: 1}, Sequence: 1})
	}()
	select {
	case fate := <-answer:
		if fate != raft.FateStrange {
			t.Errorf("got %d, though nobody opened that session", fate)
		}
	case <-time.After(10 * time.Second):
		t.Error("the loop waits for the store")
	}
}

// memberOfMachine is a member of which nothing works but the state machine.
func memberOfMachine(t *testing.T) *Member {
	t.Helper()
	eng, err := engine.OpenMem(engine.MemOptions{FS: vfs.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Bootstrap(eng, 1, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	machine, err := apply.Open(eng, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := newGeneration(firstGeneration)
	g.Engine, g.Machine = eng, machine
	m, err := New(Options{Data: &Data{Generation: g}, Clock: env.WallClock{}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
