package mvcc

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/kv"
)

// change is the change of one key at one revision. The changes of a batch share rows (pack.go). Each names the version that it
// replaced, but for those of a store that was filled from a file:
//
//	uvarint main-before.main | uvarint before.sub | uvarint length of the row before
type change struct {
	kind   byte
	user   []byte // aliases the row
	before position
	named  bool   // before is known
	by     []byte // encoded author (author.go); empty: it is not known
}

// Kinds of changes. A creation replaces nothing: a tombstone before it is deleted with its own change.
const (
	changeUpdate = 0
	changeCreate = 1
	changeDelete = 2
	changeNamed  = 4 // added to the kind: the version before is named
)

// appendBefore appends the name of the version that the change at rev replaced.
func appendBefore(dst []byte, c *change, rev kv.Rev) []byte {
	dst = binary.AppendUvarint(dst, uint64(rev.Main-c.before.rev.Main))
	dst = binary.AppendUvarint(dst, uint64(c.before.rev.Sub))
	return binary.AppendUvarint(dst, uint64(c.before.row))
}

// decodeBefore reverses appendBefore and returns the rest of the row.
func (c *change) decodeBefore(row []byte, rev kv.Rev) (rest []byte, ok bool) {
	var numbers [3]uint64
	for i := range numbers {
		n := 0
		if numbers[i], n = binary.Uvarint(row); n <= 0 {
			return nil, false
		}
		row = row[n:]
	}
	if numbers[0] > uint64(rev.Main) || numbers[1] > maxSub || numbers[2] == 0 || numbers[2] > maxRowLen {
		return nil, false
	}
	c.before.rev = kv.Rev{Main: rev.Main - kv.Revision(numbers[0]), Sub: int64(numbers[1])}
	c.before.row = int(numbers[2])
	return row, later(rev, c.before.rev)
}

// maxRowLen exceeds the length of every record: the size of a command bounds values.
const maxRowLen = 1 << 40
