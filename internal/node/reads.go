package node

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/linked"
)

// Reader waits for a read index without a goroutine.
type Reader struct {
	// To is told once, by a goroutine that must not be held up.
	To    interface{ Shown() }
	place linked.Place[Reader]
}

// told is a function as what a Reader tells.
type told func()

func (f told) Shown() { f() }

// readGroup is the reads that share one question to the leader. Everybody in it waits for done, or is one of readers.
type readGroup struct {
	id       uint64
	done     chan struct{}
	readers  linked.List[Reader]
	joined   []*readGroup // that are asked again together with this one
	index    consensus.Index
	sentTick uint64
}

func (g *readGroup) finish() {
	close(g.done)
	for r := g.readers.First(); r != nil; r = g.readers.First() {
		r.place.Remove()
		r.To.Shown()
	}
	for _, other := range g.joined {
		other.finish()
	}
}

// reads batches read-index questions: whoever arrives while one is being prepared joins it (Raft thesis, section 6.4).
// A question that finds no leader, or whose answer is lost, is asked again.
type reads struct {
	mu      sync.Mutex
	lastID  uint64
	forming *readGroup   // not yet asked
	asked   []*readGroup // waiting for the leader, oldest first
	parked  []*readGroup // answered, waiting for the apply, by index
	applied consensus.Index
}

// join returns the group that a read which begins now belongs to. reader, if not nil, is told when it is done.
func (r *reads) join(reader *Reader) *readGroup {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forming == nil {
		r.forming = &readGroup{done: make(chan struct{})}
	}
	if reader != nil {
		r.forming.readers.PushBack(&reader.place, reader)
	}
	return r.forming
}

// leave forgets a reader, unless it was told or is just being told.
func (r *reads) leave(reader *Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reader.place.Remove()
}

// take moves the forming group to the asked ones and returns its id, or zero if nobody waits.
func (r *reads) take(tick uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.forming
	if g == nil {
		return 0
	}
	r.forming = nil
	r.lastID++
	g.id, g.sentTick = r.lastID, tick
	r.asked = append(r.asked, g)
	return g.id
}

// answered parks or finishes the groups whose index is known now.
func (r *reads) answered(answers []consensus.ReadIndex) {
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
		if g.index <= r.applied {
			g.finish()
			continue
		}
		at, _ = slices.BinarySearchFunc(r.parked, g.index+1, func(g *readGroup, i consensus.Index) int {
			if g.index < i {
				return -1
			}
			return 1
		})
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
		if !which(g) {
			keep = append(keep, g)
			continue
		}
		if r.forming == nil {
			r.forming = g
			continue
		}
		r.forming.joined = append(r.forming.joined, g)
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
