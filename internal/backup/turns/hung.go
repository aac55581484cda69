package turns

import (
	"time"

	"github.com/quorate/quorate/internal/backup/ship"
)

// MostHung is how many operations that were given up may be under way when another turn begins, and MostHungOpens how many of
// them may be an Open: each of these holds the names that it has listed.
const (
	MostHung      = 16
	MostHungOpens = 1
)

// begun is an operation of Ship under way.
type begun struct {
	kind ship.Kind
	at   time.Time
	size int64 // of what it holds in memory
	base bool  // it puts the manifest of a base
}

// local reports whether an operation is on the member's own disk, where it ends.
func (b begun) local() bool { return b.kind == ship.Checkpoint || b.kind == ship.Discard }

// hung are operations that were given up and have not ended.
type hung struct {
	ops   int
	opens int   // of these
	bytes int64 // of what the others hold
}

// sizeOf is what an operation holds in memory: what it puts, or the object that it reads.
func sizeOf(op *ship.Op) int64 {
	size := int64(len(op.Content))
	if op.Prune != nil {
		size += int64(len(op.Prune.Content)) + op.Prune.Most
	}
	return size
}

// add counts operations of Ship, and an Open.
func (h *hung) add(under map[uint64]begun, opens bool) {
	h.ops += len(under)
	for _, b := range under {
		h.bytes += b.size
	}
	if opens {
		h.ops++
		h.opens++
	}
}

// end forgets one that has ended.
func (h *hung) end(op *ship.Op, opened bool) {
	h.ops--
	h.bytes -= sizeOf(op)
	if opened {
		h.opens--
	}
}

// leaves reports whether room is left for another turn, of so many bytes for what waits.
func (h *hung) leaves(held int64) bool {
	return h.ops <= MostHung && h.opens <= MostHungOpens && h.bytes <= held/2
}
