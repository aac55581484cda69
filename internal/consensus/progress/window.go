package progress

import "github.com/quorate/quorate/internal/consensus"

// Window limits what is on its way to a follower, by messages and by bytes. It is a ring, oldest first, that grows as
// needed up to maxMessages.
type Window struct {
	maxMessages, maxBytes int

	ring  []flight
	start int
	count int
	bytes int
}

type flight struct {
	last  consensus.Index
	bytes int
}

// Full reports whether no more may be sent. One message may always be on its way, however large.
func (w *Window) Full() bool {
	return w.count >= w.maxMessages || (w.count > 0 && w.bytes >= w.maxBytes)
}

// Count returns how many messages are on their way.
func (w *Window) Count() int { return w.count }

// Add notes an append that ends with last.
func (w *Window) Add(last consensus.Index, bytes int) {
	if w.count == len(w.ring) {
		w.grow()
	}
	w.ring[(w.start+w.count)%len(w.ring)] = flight{last, bytes}
	w.count++
	w.bytes += bytes
}

func (w *Window) grow() {
	ring := make([]flight, max(8, 2*len(w.ring)))
	for i := range w.count {
		ring[i] = w.ring[(w.start+i)%len(w.ring)]
	}
	w.ring, w.start = ring, 0
}

// FreeTo forgets the appends that end at or before index.
func (w *Window) FreeTo(index consensus.Index) {
	for w.count > 0 && w.ring[w.start].last <= index {
		w.bytes -= w.ring[w.start].bytes
		w.start = (w.start + 1) % len(w.ring)
		w.count--
	}
}

func (w *Window) reset() { w.start, w.count, w.bytes = 0, 0, 0 }
