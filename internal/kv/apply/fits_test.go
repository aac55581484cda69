package apply_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/limits/memory"
)

// Ensure that a store is not opened whose leases need more memory than there is, and that the count before the opening equals
// the leases that it has then.
func TestOpen_tooLittleMemory(t *testing.T) {
	b := newBench(t)
	for id := range kv.LeaseID(3) {
		b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id + 1, TTLSeconds: 100}})
	}
	b.do(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Lease: 2}})
	held := b.m.LeaseBytes()
	if held != 3*lease.EachBytes {
		t.Fatalf("its leases take %d bytes", held)
	}
	if _, err := apply.Open(b.eng, apply.Options{MostLeases: held}); err != nil {
		t.Errorf("with memory for as much: %v", err)
	}
	var refused *memory.LeasesError
	if _, err := apply.Open(b.eng, apply.Options{MostLeases: held - 1}); !errors.As(err, &refused) || refused.Held != held {
		t.Errorf("with memory for one lease less: %v", err)
	}
}

// Ensure that the member with the least memory counts, also a learner or one that is down, and no process that is not a member.
func TestMachine_LeastMemory(t *testing.T) {
	b := newLeveledBench(t, level.Own)
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
