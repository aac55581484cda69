package census

import "github.com/quorate/quorate/internal/kv"

// Change is the creation of a key that did not exist, or the deletion of one that did.
type Change struct {
	Key      []byte
	Revision kv.Revision
	Born     bool
}

// Span is a range of keys, as in kv.RangeOp: [Key, End), and to the end of the key space if End is a single zero byte.
type Span struct{ Key, End []byte }

func isOpen(end []byte) bool { return len(end) == 1 && end[0] == 0 }
