package mvcc

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/kv"
)

// A change in a row of its own is
//
//	kind (1) | [uvarint main-before.main | uvarint before.sub | uvarint length of the row before] | user key
//
// The part in brackets names the version that the change replaced. It is there if the kind says so: rows of a store that was
// filled from a file, and those from below level.History, do not have it. From level.Changes on, the changes of a batch share
// rows (pack.go). A store may have rows of all shapes for ever.
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

// Form is a shape of the rows of changes. A build that writes one reads those before it, too.
type Form uint8

// Forms, the latest first.
const (
	FormPacked Form = iota // changes of a batch share rows: from level.Changes on
	FormNamed              // a row each, which names the version that it replaces: at level.History
	FormPlain              // a row each
)

func appendChange(dst []byte, c *change, rev kv.Rev) []byte {
	if !c.named {
		return append(append(dst, c.kind), c.user...)
	}
	dst = append(dst, c.kind|changeNamed)
	return append(appendBefore(dst, c, rev), c.user...)
}

// appendBefore appends the name of the version that the change at rev replaced.
func appendBefore(dst []byte, c *change, rev kv.Rev) []byte {
	dst = binary.AppendUvarint(dst, uint64(rev.Main-c.before.rev.Main))
	dst = binary.AppendUvarint(dst, uint64(c.before.rev.Sub))
	return binary.AppendUvarint(dst, uint64(c.before.row))
}

// decodeBefore undoes appendBefore and returns what follows.
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
		if row, ok = c.decodeBefore(row, rev); !ok {
			return c, false
		}
	}
	c.user = row
	return c, true
}

// maxRowLen is above the length of every record: values are bounded by the size of a command.
const maxRowLen = 1 << 40
