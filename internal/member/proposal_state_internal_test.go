package member

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/datadir/datatest"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Ensure that the loop can ask for the state of a proposal also when the store that it knows was just closed.
func TestMember_fate_whileStoreIsReplaced(t *testing.T) {
	m := memberOfMachine(t)
	if err := m.data.Close(); err != nil {
		t.Fatal(err)
	}
	answer := make(chan fast.ProposalState, 1)
	go func() {
		answer <- stateIn(&m.stores)(consensus.ProposalID{Session: consensus.SessionID{Member: 1, Number: 1}, Sequence: 1})
	}()
	select {
	case state := <-answer:
		if state != fast.ProposalNoSession {
			t.Errorf("got %d, though nobody opened that session", state)
		}
	case <-time.After(10 * time.Second):
		t.Error("the loop waits for the store")
	}
}

// memberOfMachine is a member of which nothing works but the state machine.
func memberOfMachine(t *testing.T) *Member {
	t.Helper()
	return memberOf(t, consensus.Config{Voters: []consensus.MemberID{1}})
}

func memberOf(t *testing.T, first consensus.Config) *Member {
	t.Helper()
	options := datatest.Options()
	identity := wal.Identity{Cluster: 1, Member: 1, Storage: wal.StorageID{1}}
	if err := datadir.Create(options, identity, first); err != nil {
		t.Fatal(err)
	}
	data := datatest.Open(t, options)
	m, err := New(Options{Data: data, Clock: env.WallClock{}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
