package transport

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

const (
	// maxStrays bounds how many strays are remembered.
	maxStrays = 64
	// strayStands is for how long a stray is told of after it was seen last.
	strayStands = 30 * time.Second
)

// strays are processes without data that were found where a member was looked for: it may run elsewhere.
type strays struct {
	mu   sync.Mutex
	seen map[stray]time.Time
}

// stray is a process that was started as a member, at a URL.
type stray struct {
	member consensus.MemberID
	url    string
}

// note takes what a look for a member at a URL has found.
func (s *strays) note(id consensus.MemberID, url string, presence identity.Presence, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := stray{id, url}
	if presence != identity.Empty {
		delete(s.seen, at)
		return
	}
	if s.seen == nil {
		s.seen = map[stray]time.Time{}
	}
	if _, known := s.seen[at]; known || len(s.seen) < maxStrays {
		s.seen[at] = now
	}
}

// all returns those that were seen lately, and forgets the others.
func (s *strays) all(now time.Time) (all []stray) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, seen := range s.seen {
		if now.Sub(seen) > strayStands {
			delete(s.seen, at)
			continue
		}
		all = append(all, at)
	}
	return all
}
