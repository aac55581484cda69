package metrics

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/histogram"
)

// Latencies is a histogram with bounds of 1 ms times powers of two, as etcd's.
type Latencies struct {
	counts [latencyBounds + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
	traced histogram.Exemplars
}

const latencyBounds = 14

// Observe counts a call that took so long. trace is the id of its trace, if it is recorded, and now when the call ended.
func (l *Latencies) Observe(took time.Duration, trace string, now time.Time) {
	at, bound := 0, time.Millisecond
	for at < latencyBounds && took > bound {
		at, bound = at+1, 2*bound
	}
	l.counts[at].Add(1)
	l.sum.Add(int64(took))
	if trace != "" {
		l.traced.Note(at, len(l.counts), histogram.Exemplar{Value: took.Seconds(), Trace: trace, At: now})
	}
}

// cumulative gives how many took no longer than each bound, in seconds.
func (l *Latencies) cumulative() (total uint64, sum time.Duration, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, latencyBounds)
	bound := time.Millisecond
	for i := range latencyBounds {
		total += l.counts[i].Load()
		buckets[bound.Seconds()] = total
		bound *= 2
	}
	return total + l.counts[latencyBounds].Load(), time.Duration(l.sum.Load()), buckets
}
