package mvcc

import "sync/atomic"

// paddedCounter is a counter with a cache line of its own.
type paddedCounter struct {
	_ [64]byte
	n atomic.Int64
	_ [56]byte
}

func (c *paddedCounter) add(n int64) { c.n.Add(n) }
func (c *paddedCounter) load() int64 { return c.n.Load() }
