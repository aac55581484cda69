package member

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// ScrubPace says how gently the history below the compact revision is deleted.
type ScrubPace struct {
	Keys  int           // in one step
	Pause time.Duration // between two steps
}

// scrubber deletes, in steps beside everything else, what a compaction made invisible.
type scrubber struct {
	mu      sync.Mutex
	wanted  kv.Revision   // the compact revision when last looked at
	done    kv.Revision   // deleted up to here
	changed chan struct{} // closed when done moves
	signal  chan struct{}
}

func (s *scrubber) init() {
	s.changed = make(chan struct{})
	s.signal = make(chan struct{}, 1)
	s.signal <- struct{}{} // a scrub that a restart interrupted goes on
}

// consider wakes the scrubber if the compact revision has moved. It is called after every batch.
func (s *scrubber) consider(compacted kv.Revision) {
	s.mu.Lock()
	moved := compacted > s.wanted
	s.wanted = max(s.wanted, compacted)
	s.mu.Unlock()
	if moved {
		s.wake()
	}
}

func (s *scrubber) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

func (s *scrubber) finished(revision kv.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = max(s.done, revision)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *scrubber) progress() (done kv.Revision, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done, s.changed
}

// scrubHistory is the goroutine that runs the scrubber.
func (m *Member) scrubHistory() error {
	for {
		select {
		case <-m.scrub.signal:
		case <-m.stopping.Done():
			return nil
		}
		for done := false; !done; {
			var err error
			if done, err = m.scrubStep(); err != nil {
				return err
			}
			if done {
				break
			}
			select {
			case <-time.After(m.options.Scrub.Pause):
			case <-m.stopping.Done():
				return nil
			}
		}
	}
}

func (m *Member) scrubStep() (done bool, err error) {
	machine, release := m.Machine()
	defer release()
	target := machine.Store().CompactRevision()
	done, err = machine.Store().CompactStep(m.options.Scrub.Keys)
	if err == nil && done {
		m.scrub.finished(target)
	}
	return done, err
}

// WaitCompacted returns once the history below revision is deleted here.
func (m *Member) WaitCompacted(ctx context.Context, revision kv.Revision) error {
	for {
		done, changed := m.scrub.progress()
		if done >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-m.stopping.Done():
			return ErrStopped
		}
	}
}
