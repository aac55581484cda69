package histogram

import (
	"math"
	"sync/atomic"
)

// Histogram counts observations up to bounds that double. Use New. The unit is the caller's.
type Histogram struct {
	first  float64
	counts []atomic.Uint64 // by bound; the last is for what exceeds all bounds
	sum    atomic.Uint64   // bits of a float64
	traced Exemplars
}

// New returns a histogram with so many bounds, of which the first is given.
func New(first float64, bounds int) *Histogram {
	return &Histogram{first: first, counts: make([]atomic.Uint64, bounds+1)}
}

// Observe counts one value.
func (h *Histogram) Observe(value float64) { h.ObserveMany(value, 1) }

// ObserveMany counts a value n times.
func (h *Histogram) ObserveMany(value float64, n uint64) {
	if n == 0 {
		return
	}
	h.counts[h.bucketOf(value)].Add(n)
	for {
		before := h.sum.Load()
		after := math.Float64bits(math.Float64frombits(before) + value*float64(n))
		if h.sum.CompareAndSwap(before, after) {
			return
		}
	}
}

// bucketOf returns the bucket of a value.
func (h *Histogram) bucketOf(value float64) (at int) {
	for bound := h.first; at < len(h.counts)-1 && value > bound; bound *= 2 {
		at++
	}
	return at
}

// Exemplify keeps an exemplar of a value that was observed, until another one of the same bucket comes.
func (h *Histogram) Exemplify(e Exemplar) { h.traced.Note(h.bucketOf(e.Value), len(h.counts), e) }

// Exemplars returns the exemplars that are kept.
func (h *Histogram) Exemplars() []Exemplar { return h.traced.All() }

// Read returns how many values were observed, their sum, and how many of them were at most each bound.
func (h *Histogram) Read() (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(h.counts)-1)
	bound := h.first
	for i := range len(h.counts) - 1 {
		count += h.counts[i].Load()
		buckets[bound] = count
		bound *= 2
	}
	count += h.counts[len(h.counts)-1].Load()
	return count, math.Float64frombits(h.sum.Load()), buckets
}
