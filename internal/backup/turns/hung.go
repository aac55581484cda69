package turns

import (
	"time"

	"github.com/quorate/quorate/internal/backup/ship"
)

// MostHung is how many operations that were given up may be under way when another turn begins.
const MostHung = 16

// begun is an operation of Ship under way.
type begun struct {
	kind ship.Kind
	at   time.Time
	size int64 // of what it puts, in memory
}

// local reports whether an operation is on the member's own disk, where it ends.
func (b begun) local() bool { return b.kind == ship.Checkpoint || b.kind == ship.Discard }

// hung are operations that were given up and have not ended.
type hung struct {
	ops   int
	bytes int64 // of what they put
}

// add counts operations of Ship, and an Open.
func (h *hung) add(under map[uint64]begun, opens bool) {
	h.ops += len(under)
	for _, b := range under {
		h.bytes += b.size
	}
	if opens {
		h.ops++
	}
}

// leaves reports whether room is left for another turn, of so many bytes for what waits.
func (h *hung) leaves(held int64) bool { return h.ops <= MostHung && h.bytes <= held/2 }
