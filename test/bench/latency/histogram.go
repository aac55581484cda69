package latency

import (
	"math/bits"
	"time"
)

// A bucket is a power of two of nanoseconds cut into 64 equal parts, so that a quantile is at most 1/64 too high.
const (
	partBits = 6
	parts    = 1 << partBits
	powers   = 36 // up to 2^42 ns, more than an hour
)

// Histogram counts durations. The zero value is empty. It belongs to one goroutine.
type Histogram struct {
	buckets [powers * parts]uint64
	count   uint64
	longest time.Duration
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < parts {
		return int(v)
	}
	shift := bits.Len64(v) - partBits - 1
	return min((shift+1)<<partBits+int(v>>shift)-parts, powers*parts-1)
}

// upperEdge is the largest duration that falls into bucket i.
func upperEdge(i int) time.Duration {
	if i < parts {
		return time.Duration(i)
	}
	shift := i>>partBits - 1
	return time.Duration(uint64(i&(parts-1)+parts+1)<<shift - 1)
}

// Record counts one duration; a negative one as zero.
func (h *Histogram) Record(d time.Duration) {
	h.buckets[bucketOf(d)]++
	h.count++
	h.longest = max(h.longest, d)
}

// Add counts what another one has counted, too.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
	h.count += other.count
	h.longest = max(h.longest, other.longest)
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.count }

// Longest is the longest of them, exactly.
func (h *Histogram) Longest() time.Duration { return h.longest }

// Quantile returns a duration that a share q of those recorded does not exceed, and 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := min(uint64(q*float64(h.count)), h.count-1)
	for i, n := range h.buckets {
		if rank < n {
			return upperEdge(i)
		}
		rank -= n
	}
	return upperEdge(len(h.buckets) - 1)
}
