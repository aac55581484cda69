package snapshots

import (
	"context"
	"errors"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
)

// errUseless ends a snapshot that has become useless on its way.
var errUseless = errors.New("member: the log has outgrown the snapshot on its way; a newer one follows")

// streams ends snapshots that are on their way. The zero value is ready.
type streams struct {
	mu   sync.Mutex
	byID map[consensus.MemberID]*stream
}

// stream is one snapshot on its way.
type stream struct{ cancel context.CancelCauseFunc }

// begin returns the context of a snapshot to a member; done ends it. A leadership that begins anew while an older one's
// snapshot is still on its way can end only its own.
func (s *streams) begin(parent context.Context, to consensus.MemberID) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	begun := &stream{cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[consensus.MemberID]*stream{}
	}
	s.byID[to] = begun
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byID[to] == begun {
			delete(s.byID, to)
		}
	}
}

// stop ends the snapshot to a member that was begun last, if it is still on its way.
func (s *streams) stop(to consensus.MemberID) {
	s.mu.Lock()
	begun := s.byID[to]
	s.mu.Unlock()
	if begun != nil {
		begun.cancel(errUseless)
	}
}
