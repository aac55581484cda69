package mvcc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// A hash from before a compaction at that very revision stays the same, and its compact revision says which history it covers.
func TestStore_HashKV_acrossCompaction(t *testing.T) {
	s := newStore(t, openers[1])
	put(t, s, "a", "1", 0) // 2
	put(t, s, "a", "2", 0) // 3
	put(t, s, "b", "1", 0) // 4
	before, compactBefore, _, err := s.HashKV(3)
	if err != nil {
		t.Fatal(err)
	}
	if err := compact(t, s, 3); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	after, compactAfter, _, err := s.HashKV(3)
	if err != nil || after != before || compactAfter != compactBefore {
		t.Errorf("got %x under %d, %v, before it was %x under %d", after, compactAfter, err, before, compactBefore)
	}
	if _, under, _, err := s.HashKV(4); err != nil || under != 3 {
		t.Errorf("a hash at another revision: got compact revision %d, %v, want 3", under, err)
	}
}

// Ensure that hashing, which takes seconds on a large store, ends with the life of the store.
func TestStore_Hash_lifeEnds(t *testing.T) {
	life, end := context.WithCancel(t.Context())
	eng, err := openers[1].open(filestest.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	s, err := mvcc.Open(eng, mvcc.Options{Life: life})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "a", "1", 0)
	if _, err := s.Hash(); err != nil {
		t.Fatal(err)
	}
	end()
	_, errHash := s.Hash()
	_, _, _, errKV := s.HashKV(0)
	if !errors.Is(errHash, mvcc.ErrEnded) || !errors.Is(errKV, mvcc.ErrEnded) {
		t.Errorf("got %v and %v, want ErrEnded", errHash, errKV)
	}
}

// Ensure that the checksum of a history is that of earlier versions: in a rolling upgrade members of both compare theirs, and a
// member whose checksum differs from the others' stops serving.
func TestStore_HashKV_staysTheSame(t *testing.T) {
	s := newStore(t, openers[1])
	if hash, _, _, err := s.HashKV(1); err != nil || hash != 0 {
		t.Errorf("of an empty history: %x, %v", hash, err)
	}
	put(t, s, "a", "1", 0)
	put(t, s, "a", "2", 0)
	put(t, s, "b", "1", 0)
	const before = 0xcff059e
	if hash, _, _, err := s.HashKV(4); err != nil || hash != before {
		t.Errorf("got %#x, %v, want %#x", hash, err, before)
	}
}
