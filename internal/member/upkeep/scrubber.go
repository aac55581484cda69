package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
)

// ScrubPace bounds the rate at which history below the compact revision is deleted.
type ScrubPace struct {
	Keys  int           // in one step
	Pause time.Duration // between two steps
}

// Scrubber deletes in the background, in small steps, the versions that a compaction made invisible, and counts keys, so that
// reads need not.
type Scrubber struct {
	stores *datadir.Stores
	pace   ScrubPace
	signal chan struct{}
	idle   bool // the last step found nothing to do; of the goroutine that makes steps

	mu     sync.Mutex
	wanted kv.Revision // the compact revision when last looked at; -1: there never was one, and 0 is one
}

// NewScrubber returns a Scrubber that goes on with what a restart interrupted.
func NewScrubber(stores *datadir.Stores, pace ScrubPace) *Scrubber {
	s := &Scrubber{stores: stores, pace: pace, signal: make(chan struct{}, 1), wanted: -1}
	s.Wake()
	return s
}

// Consider wakes the scrubber if the compact revision has moved, or if there are keys to count. It is called after every batch.
func (s *Scrubber) Consider(compacted kv.Revision, uncounted bool) {
	s.mu.Lock()
	moved := compacted > s.wanted
	s.wanted = max(s.wanted, compacted)
	s.mu.Unlock()
	if moved || uncounted {
		s.Wake()
	}
}

// Wake makes the scrubber look for work.
func (s *Scrubber) Wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// Run works until ctx ends.
func (s *Scrubber) Run(ctx context.Context) error {
	for {
		select {
		case <-s.signal:
		case <-ctx.Done():
			return nil
		}
		begun := time.Now()
		for {
			stepped := time.Now()
			deleted, err := s.delete()
			if err != nil {
				return err
			}
			s.time(stepped, begun, deleted)
			counted, err := s.count()
			if err != nil {
				return err
			}
			if deleted && counted {
				break
			}
			select {
			case <-time.After(s.pace.Pause):
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// Due reports whether a caller woke the scrubber since the last call.
func (s *Scrubber) Due() bool {
	select {
	case <-s.signal:
		return true
	default:
		return false
	}
}

// Step does the next of what there is to do, and reports whether that was all.
func (s *Scrubber) Step() (done bool, err error) {
	deleted, err := s.delete()
	if err != nil {
		return false, err
	}
	counted, err := s.count()
	return deleted && counted, err
}

// count counts the next keys, and reports whether all are counted.
func (s *Scrubber) count() (done bool, err error) {
	machine, release := s.stores.Machine()
	defer release()
	return machine.Store().CountStep()
}

// delete deletes the next of what is to be deleted, and reports whether that was all.
func (s *Scrubber) delete() (done bool, err error) {
	machine, release := s.stores.Machine()
	defer release()
	store, did := machine.Store(), &machine.Counts().Compaction
	before := store.CompactedVersions()
	s.idle = store.CompactedTo() >= store.CompactRevision()
	done, err = store.CompactStep(s.pace.Keys)
	did.Keys.Add(uint64(max(store.CompactedVersions()-before, 0)))
	return done, err
}

// time takes note of how long a step took, and, with the last one, the whole compaction.
func (s *Scrubber) time(stepped, begun time.Time, done bool) {
	if s.idle {
		return
	}
	did := &s.stores.Latest().Counts().Compaction
	now := time.Now()
	did.Steps.Observe(milliseconds(now.Sub(stepped)))
	if done {
		did.Whole.Observe(milliseconds(now.Sub(begun)))
		did.Last.Store(now.Unix())
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
