package mvcc_test

import (
	"testing"
)

// What was hashed before a compaction at that very revision keeps its hash, and says which history it covers.
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
