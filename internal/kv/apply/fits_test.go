package apply_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/level"
	"github.com/quorate/quorate/internal/memory"
)

// Ensure that a store is not opened whose leases are more than there is memory for, that what is counted before it is opened is
// what it holds then, and that users and sessions keep no member from its start.
func TestOpen_tooLittleMemory(t *testing.T) {
	b := newLeveledBench(t, 0)
	for member := range uint64(3) {
		b.knows(member+1, level.Own)
	}
	b.do(raise(level.Own))
	for id := range kv.LeaseID(3) {
		b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id + 1, TTLSeconds: 100}})
	}
	b.do(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Lease: 2}})
	b.do(addUser("somebody"))
	session := b.m.NextClientSession(99, 0)
	b.do(kv.Command{SessionOpen: &kv.SessionOpenOp{Member: uint64(session.Member), Number: session.Number}})
	held := b.m.Held()
	if held.Leases != 3*lease.EachBytes || held.Users == 0 || held.Sessions != apply.ClientSessionBytes {
		t.Fatalf("it holds %+v", held)
	}
	if _, err := apply.Open(b.eng, apply.Options{Most: held}); err != nil {
		t.Errorf("with memory for as much: %v", err)
	}
	var refused *memory.StateError
	less := memory.State{Leases: held.Leases - 1, Users: held.Users, Sessions: held.Sessions}
	if _, err := apply.Open(b.eng, apply.Options{Most: less}); !errors.As(err, &refused) || refused.Held.Leases != held.Leases {
		t.Errorf("with memory for one lease less: %v", err)
	}
	if _, err := apply.Open(b.eng, apply.Options{Most: memory.State{Leases: held.Leases, Users: 1, Sessions: 1}}); err != nil {
		t.Errorf("with memory for no user and no session: %v", err)
	}
}

// Ensure that the member with the least memory counts, learners and those that are down too, and a process that is no member does not.
func TestMachine_LeastMemory(t *testing.T) {
	b := newLeveledBench(t, 0)
	if least, _ := b.m.LeastMemory(); least != 0 {
		t.Errorf("nobody has told any: %d", least)
	}
	tell := func(member uint64, bytes int64) {
		b.do(kv.Command{Publish: &kv.PublishOp{Member: member, Name: "m", Build: "b", Level: level.Own, Memory: bytes}})
	}
	expect := func(bytes int64, of uint64) {
		t.Helper()
		if least, by := b.m.LeastMemory(); least != bytes || by.Member != of {
			t.Errorf("got %d of %d, want %d of %d", least, by.Member, bytes, of)
		}
	}
	tell(1, 2<<30)
	expect(2<<30, 1)
	tell(2, 4<<30)
	expect(2<<30, 1)
	tell(3, 1<<30) // a learner
	expect(1<<30, 3)
	b.open()
	expect(1<<30, 3)
	tell(9, 1<<20) // no member
	expect(1<<30, 3)
	tell(3, 8<<30)
	expect(2<<30, 1)
}
