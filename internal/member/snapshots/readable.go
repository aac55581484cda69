package snapshots

import (
	"errors"
	"fmt"
	"sync"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
)

// UnreadableError means that a member's build does not read the store as it is now. Nothing is sent until that member says that
// it runs a build that does.
type UnreadableError struct {
	To     level.Holder
	Active level.Level
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the store is at feature level %d, which %s does not read: the snapshot waits until %s is "+
		"started there", e.Active, e.To.String(), e.Active.Builds())
}

// readable refuses to send a snapshot to a member that has published a level below the active one: it was started with an
// earlier build than before. Of a member that never started nothing is known.
func readable(stores *datadir.Stores, to consensus.MemberID) error {
	machine := stores.Latest()
	published, started := machine.Published(to)
	active := machine.ActiveLevel()
	if !started || published.Level >= active {
		return nil
	}
	name := published.Name
	if name == "" {
		name = to.String()
	}
	return &UnreadableError{Active: active,
		To: level.Holder{Name: name, Build: published.Build, Level: published.Level, Started: true}}
}

// waiting remembers who waits for another build: the core asks again with each heartbeat, and the log is told once. The zero
// value is ready.
type waiting struct {
	mu   sync.Mutex
	told map[consensus.MemberID]string // of members only
}

// isNews notes how sending to a member ended, and reports whether that is not what is known already.
func (w *waiting) isNews(to consensus.MemberID, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var unreadable *UnreadableError
	if !errors.As(err, &unreadable) {
		delete(w.told, to)
		return true
	}
	if w.told == nil {
		w.told = map[consensus.MemberID]string{}
	}
	before := w.told[to]
	w.told[to] = err.Error()
	return before != err.Error()
}
