package node

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/linked"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Reader waits for a read index without a goroutine.
type Reader struct {
	// To is told once, by a goroutine that must not be held up.
	To    interface{ Shown(by proposals.Passage) }
	place linked.Place[Reader]
}

// told is a function as what a Reader tells.
type told func()

func (f told) Shown(proposals.Passage) { f() }

// readGroup is the readers that share one question to the leader.
type readGroup struct {
	id       uint64
	readers  linked.List[Reader]
	index    consensus.Index
	sentTick uint64
	passage  proposals.Passage
}

func (g *readGroup) finish() {
	for r := g.readers.First(); r != nil; r = g.readers.First() {
		r.place.Remove()
		r.To.Shown(g.passage)
	}
}

// takeIn gives the readers of another group to this one, and nothing is left of the other: what gave up leaves nothing behind,
// however often it asked.
func (g *readGroup) takeIn(other *readGroup) {
	for r := other.readers.First(); r != nil; r = other.readers.First() {
		r.place.Remove()
		g.readers.PushBack(&r.place, r)
	}
}

// reads batches read-index questions: a read that arrives while one is being prepared joins it (Raft thesis, section 6.4). A
// question that finds no leader, or whose answer is lost, is asked again.
type reads struct {
	mu      sync.Mutex
	lastID  uint64
	forming *readGroup   // not yet asked
	asked   []*readGroup // waiting for the leader, oldest first
	parked  []*readGroup // answered, waiting for the apply, by index
	applied consensus.Index
}

// join adds a read that begins now. reader is told when it is done.
func (r *reads) join(reader *Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forming == nil {
		r.forming = &readGroup{}
	}
	r.forming.readers.PushBack(&reader.place, reader)
}

// leave forgets a reader, unless it was told or is just being told.
func (r *reads) leave(reader *Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reader.place.Remove()
}

// take moves the forming group to the asked ones and returns its id, or zero if no read waits.
func (r *reads) take(tick uint64, now time.Time) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.forming
	if g == nil {
		return 0
	}
	r.forming = nil
	r.lastID++
	if g.id, g.sentTick = r.lastID, tick; g.passage.Left.IsZero() {
		g.passage.Left = now
	}
	r.asked = append(r.asked, g)
	return g.id
}

// answered parks or finishes the groups whose index is known now. by is what they waited for.
func (r *reads) answered(answers []consensus.ReadIndex, by proposals.Passage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range answers {
		at := slices.IndexFunc(r.asked, func(g *readGroup) bool { return g.id == a.ID })
		if at < 0 {
			continue // asked again since, under another id
		}
		g := r.asked[at]
		r.asked = slices.Delete(r.asked, at, at+1)
		g.index = a.Index
		g.passage.Known, g.passage.Ready, g.passage.Waited, g.passage.Leader = by.Known, by.Known, by.Waited, by.Leader
		if g.index <= r.applied {
			g.finish()
			continue
		}
		r.park(g)
	}
}

// park has a group wait for its index to be applied, with those that wait for the same.
func (r *reads) park(g *readGroup) {
	at, found := slices.BinarySearchFunc(r.parked, g.index, func(g *readGroup, index consensus.Index) int {
		return cmp.Compare(g.index, index)
	})
	switch {
	case found:
		r.parked[at].takeIn(g)
	case g.readers.Len() > 0:
		r.parked = slices.Insert(r.parked, at, g)
	}
}

// advance finishes the groups that waited for index to be applied.
func (r *reads) advance(index consensus.Index) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied = max(r.applied, index)
	n := 0
	for n < len(r.parked) && r.parked[n].index <= r.applied {
		r.parked[n].finish()
		r.parked[n] = nil
		n++
	}
	r.parked = r.parked[n:]
	if len(r.parked) == 0 {
		r.parked = nil
	}
}

// failed puts groups that found no leader back into the forming one.
func (r *reads) failed(ids []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again(func(g *readGroup) bool { return slices.Contains(ids, g.id) })
}

// resend does the same for all that were asked at or before tick.
func (r *reads) resend(tick uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again(func(g *readGroup) bool { return g.sentTick <= tick })
}

func (r *reads) again(which func(*readGroup) bool) {
	keep := r.asked[:0]
	for _, g := range r.asked {
		switch {
		case !which(g):
			keep = append(keep, g)
		case g.readers.Len() == 0: // all have left
		case r.forming == nil:
			r.forming = g
		default:
			r.forming.takeIn(g)
		}
	}
	clear(r.asked[len(keep):])
	r.asked = keep
}

// waiting reports whether take would ask something.
func (r *reads) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forming != nil
}
