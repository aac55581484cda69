package member

import (
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
	mu     sync.Mutex
	wanted kv.Revision // the compact revision when last looked at
	signal chan struct{}
}

func (s *scrubber) init() {
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
	return machine.Store().CompactStep(m.options.Scrub.Keys)
}
