package counts

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/histogram"
	"github.com/quorate/quorate/internal/kv"
)

// Counts are the counts of a store. Use New.
type Counts struct {
	// Operations on keys, also those inside transactions and those that end leases. Txns are commands with more than one
	// operation.
	Puts, Deletes, Ranges, Txns atomic.Uint64
	PutBytes                    atomic.Uint64 // keys and values of puts

	// Leases: Renewed and Expired at the leader only.
	LeasesGranted, LeasesRevoked, LeasesRenewed, LeasesExpired atomic.Uint64
	LeasesStoodMillis                                          atomic.Uint64        // while their clock stood still
	GrantedTTLs                                                *histogram.Histogram // seconds

	Compaction Compaction
	Installing atomic.Bool // a snapshot is replacing the store

	applied [ops][2]applied
}

// Compaction counts the deletion of history below the compact revision.
type Compaction struct {
	Keys  atomic.Uint64        // versions of keys deleted
	Last  atomic.Int64         // when the last one was complete, in seconds of Unix time; 0: none was
	Steps *histogram.Histogram // milliseconds of each step
	Whole *histogram.Histogram // milliseconds of each compaction, its pauses included

	Reclaims atomic.Uint64 // rewrites of the store because much of it had been deleted
	Failed   atomic.Uint64 // rewrites that failed
}

// applied counts the commands of one kind with one outcome.
type applied struct {
	count    atomic.Uint64
	timed    uint64 // those of count that Timed has counted
	duration *histogram.Histogram
}

// New returns zero counts.
func New() *Counts {
	c := &Counts{
		GrantedTTLs: histogram.New(1, 24),
		Compaction:  Compaction{Steps: histogram.New(1, 13), Whole: histogram.New(100, 14)},
	}
	for op := range c.applied {
		for outcome := range c.applied[op] {
			c.applied[op][outcome].duration = histogram.New(0.0001, 20)
		}
	}
	return c
}

// Done counts the operations of one command.
func (c *Counts) Done(puts, deletes, ranges uint64) {
	c.Puts.Add(puts)
	c.Deletes.Add(deletes)
	c.Ranges.Add(ranges)
	if puts+deletes+ranges > 1 {
		c.Txns.Add(1)
	}
}

// Applied counts one command and its outcome.
func (c *Counts) Applied(cmd *kv.Command, err error) {
	c.Note(OpOf(cmd), err)
}

// Note counts one command of a kind and its outcome.
func (c *Counts) Note(op Op, err error) { c.applied[op][outcome(err == nil)].count.Add(1) }

// Timed notes the time that all commands applied since the last call took together: each gets an equal part.
func (c *Counts) Timed(took time.Duration) {
	total := uint64(0)
	var fresh [ops][2]uint64
	for op := range c.applied {
		for outcome := range c.applied[op] {
			a := &c.applied[op][outcome]
			fresh[op][outcome] = a.count.Load() - a.timed
			a.timed += fresh[op][outcome]
			total += fresh[op][outcome]
		}
	}
	for op := range c.applied {
		for outcome, n := range fresh[op] {
			c.applied[op][outcome].duration.ObserveMany(took.Seconds()/float64(max(total, 1)), n)
		}
	}
}

// Durations returns how long the commands of one kind took to apply, in seconds: those that succeeded, or those that were
// rejected.
func (c *Counts) Durations(op Op, success bool) *histogram.Histogram {
	return c.applied[op][outcome(success)].duration
}

func outcome(success bool) int {
	if success {
		return 1
	}
	return 0
}
