package mvcc

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/kv"
)

// A change is one row of the table of changes:
//
//	kind (1) | [uvarint main-before.main | uvarint before.sub | uvarint length of the row before] | user key
//
// The part in brackets names the version that the change replaced. It is there if the kind says so: rows of a store that was
// filled from a file, and those from below level.History, do not have it. A store may have rows of both shapes for ever.
type change struct {
	kind   byte
	user   []byte // aliases the row
	before position
	named  bool // before is known
}

// Kinds of changes. A creation replaces nothing: the tombstone before it, if there was one, goes with its own change.
const (
	changeUpdate = 0
	changeCreate = 1
	changeDelete = 2
	changeNamed  = 4 // added to the kind: the version before is named
)

func appendChange(dst []byte, c *change, rev kv.Rev) []byte {
	if !c.named {
		return append(append(dst, c.kind), c.user...)
	}
	dst = append(dst, c.kind|changeNamed)
	dst = binary.AppendUvarint(dst, uint64(rev.Main-c.before.rev.Main))
	dst = binary.AppendUvarint(dst, uint64(c.before.rev.Sub))
	dst = binary.AppendUvarint(dst, uint64(c.before.row))
	return append(dst, c.user...)
}

// decodeChange cuts the row of the change at rev.
func decodeChange(row []byte, rev kv.Rev) (c change, ok bool) {
	if len(row) == 0 {
		return c, false
	}
	c.kind, c.named = row[0]&^changeNamed, row[0]&changeNamed != 0
	if row = row[1:]; c.kind > changeDelete || c.named && c.kind == changeCreate {
		return c, false
	}
	if c.named {
		var numbers [3]uint64
		for i := range numbers {
			n := 0
			if numbers[i], n = binary.Uvarint(row); n <= 0 {
				return c, false
			}
			row = row[n:]
		}
		if numbers[0] > uint64(rev.Main) || numbers[1] > maxSub || numbers[2] == 0 || numbers[2] > maxRowLen {
			return c, false
		}
		c.before.rev = kv.Rev{Main: rev.Main - kv.Revision(numbers[0]), Sub: int64(numbers[1])}
		c.before.row = int(numbers[2])
		if !later(rev, c.before.rev) {
			return c, false
		}
	}
	c.user = row
	return c, true
}

// changeReader decodes changes as a build does.
type changeReader struct {
	blind bool // Options.Blind
}

func (r changeReader) decode(row []byte, rev kv.Rev) (c change, ok bool) {
	c, ok = decodeChange(row, rev)
	return c, ok && !(r.blind && c.named)
}

// maxRowLen is above the length of every record: values are bounded by the size of a command.
const maxRowLen = 1 << 40
