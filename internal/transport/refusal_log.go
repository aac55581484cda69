package transport

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/logpace"
	"github.com/quorate/quorate/internal/consensus"
)

// refusalLog says which refusals to log: each once for a member and a reason, and not each of a flood. Any process that
// reaches the peer port chooses the member and, in part, the words.
type refusalLog struct {
	pace logpace.Pace

	mu   sync.Mutex
	told map[consensus.MemberID]string
}

const (
	maxRefusalsTold = 256
	refusalsAtOnce  = 10
	maxLoggedText   = 1 << 10 // bytes
)

// cut shortens what a process says of itself.
func cut(text string) string { return text[:min(len(text), maxLoggedText)] }

func (l *refusalLog) init() {
	l.pace.Burst = refusalsAtOnce
	l.told = make(map[consensus.MemberID]string)
}

// next tells whether to log a refusal, with how many were not logged before it.
func (l *refusalLog) next(from consensus.MemberID, text string, now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told[from] == text {
		return 0, false
	}
	if suppressed, ok = l.pace.Next(now); !ok {
		return 0, false
	}
	if len(l.told) >= maxRefusalsTold {
		clear(l.told)
	}
	l.told[from] = text
	return suppressed, true
}

// forget makes the next refusal of a member a new one.
func (l *refusalLog) forget(from consensus.MemberID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.told, from)
}
