package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
)

// CompactionPace bounds the rate at which history below the compact revision is deleted.
type CompactionPace struct {
	Keys  int           // in one step
	Pause time.Duration // between two steps
}

// Compactor deletes in the background, in small steps, the versions that a compaction made invisible, and counts keys, so that
// reads need not.
type Compactor struct {
	stores *datadir.Stores
	pace   CompactionPace
	signal chan struct{}
	idle   bool // the last step found nothing to do; of the goroutine that makes steps

	mu     sync.Mutex
	wanted kv.Revision // the compact revision when last looked at; -1: there never was one, and 0 is one
}

// NewCompactor returns a Compactor that goes on with what a restart interrupted.
func NewCompactor(stores *datadir.Stores, pace CompactionPace) *Compactor {
	c := &Compactor{stores: stores, pace: pace, signal: make(chan struct{}, 1), wanted: -1}
	c.Wake()
	return c
}

// Consider wakes the compactor if the compact revision has moved, or if there are keys to count. It is called after every
// batch.
func (c *Compactor) Consider(compacted kv.Revision, uncounted bool) {
	c.mu.Lock()
	moved := compacted > c.wanted
	c.wanted = max(c.wanted, compacted)
	c.mu.Unlock()
	if moved || uncounted {
		c.Wake()
	}
}

// Wake makes the compactor look for work.
func (c *Compactor) Wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// Run works until ctx ends.
func (c *Compactor) Run(ctx context.Context) error {
	for {
		select {
		case <-c.signal:
		case <-ctx.Done():
			return nil
		}
		begun := time.Now()
		for {
			stepped := time.Now()
			deleted, err := c.delete()
			if err != nil {
				return err
			}
			c.time(stepped, begun, deleted)
			counted, err := c.count()
			if err != nil {
				return err
			}
			if deleted && counted {
				break
			}
			select {
			case <-time.After(c.pace.Pause):
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// Due reports whether a caller woke the compactor since the last call.
func (c *Compactor) Due() bool {
	select {
	case <-c.signal:
		return true
	default:
		return false
	}
}

// Step does the next of what there is to do, and reports whether that was all.
func (c *Compactor) Step() (done bool, err error) {
	deleted, err := c.delete()
	if err != nil {
		return false, err
	}
	counted, err := c.count()
	return deleted && counted, err
}

// count counts the next keys, and reports whether all are counted.
func (c *Compactor) count() (done bool, err error) {
	machine, release := c.stores.Machine()
	defer release()
	return machine.Store().CountStep()
}

// delete deletes the next of what is to be deleted, and reports whether that was all.
func (c *Compactor) delete() (done bool, err error) {
	machine, release := c.stores.Machine()
	defer release()
	store, did := machine.Store(), &machine.Counts().Compaction
	before := store.CompactedVersions()
	c.idle = store.CompactedTo() >= store.CompactRevision()
	done, err = store.CompactStep(c.pace.Keys)
	did.Keys.Add(uint64(max(store.CompactedVersions()-before, 0)))
	return done, err
}

// time takes note of how long a step took, and, with the last one, the whole compaction.
func (c *Compactor) time(stepped, begun time.Time, done bool) {
	if c.idle {
		return
	}
	did := &c.stores.Latest().Counts().Compaction
	now := time.Now()
	did.Steps.Observe(milliseconds(now.Sub(stepped)))
	if done {
		did.Whole.Observe(milliseconds(now.Sub(begun)))
		did.Last.Store(now.Unix())
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
