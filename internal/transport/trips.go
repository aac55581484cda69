package transport

import (
	"slices"
	"sync/atomic"
	"time"
)

// Trips counts round trips by how long they took.
type Trips struct {
	Within []uint64 // how many took no longer than TripBounds says at the same place, each including those before it
	Count  uint64
	Sum    time.Duration
}

// TripBounds are etcd's, from a tenth of a millisecond, each twice the one before.
var TripBounds = func() []time.Duration {
	bounds := make([]time.Duration, 14)
	for i := range bounds {
		bounds[i] = 100 * time.Microsecond << i
	}
	return bounds
}()

// tripCounter counts round trips to one peer.
type tripCounter struct {
	buckets [15]atomic.Uint64 // the last one is of those longer than all bounds
	sum     atomic.Int64
}

func (c *tripCounter) add(took time.Duration) {
	at, _ := slices.BinarySearch(TripBounds, took)
	c.buckets[at].Add(1)
	c.sum.Add(int64(took))
}

func (c *tripCounter) trips() Trips {
	t := Trips{Within: make([]uint64, len(TripBounds)), Sum: time.Duration(c.sum.Load())}
	for i := range c.buckets {
		t.Count += c.buckets[i].Load()
		if i < len(t.Within) {
			t.Within[i] = t.Count
		}
	}
	return t
}
