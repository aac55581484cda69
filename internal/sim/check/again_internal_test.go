package check

import (
	"errors"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
)

// Ensure that raising the active level to its present value changes nothing, also with a member that has published nothing, and
// that such a member holds back a higher level.
func TestLevels_apply_again(t *testing.T) {
	const higher = nextlevel.Level + 1
	l := levels{active: nextlevel.Level, published: map[consensus.MemberID]level.Level{1: higher}}
	config := consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: []consensus.Member{{ID: 1}, {ID: 2}}}
	raise := func(to level.Level) error {
		about, err := l.apply(before{config: &config}, &kv.Command{Raise: &kv.RaiseOp{Level: to, Of: kv.LevelView{IDs: []uint64{1, 2}}}})
		if !about {
			t.Errorf("raising to %d is not about levels", to)
		}
		return err
	}
	if again, held := raise(nextlevel.Level), raise(higher); again != nil || !errors.Is(held, kv.ErrBadCommand) ||
		l.active != nextlevel.Level {
		t.Errorf("again: %v, higher: %v, active %d", again, held, l.active)
	}
}

// Ensure that a promise of the fast path is compared with the first entry of the proposal, and not with an entry after the end
// of its session.
func TestFastPath_executed_again(t *testing.T) {
	for _, firstFails := range []bool{false, true} {
		s := NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
		id := consensus.ProposalID{Session: consensus.SessionID{Member: 1, Number: 2}, Sequence: 3}
		done, refused := kv.Result{Revision: 7}, kv.Result{Revision: 9, Err: kv.ErrSessionUnknown}
		s.fastPath.promised[id] = promise{7, done.Append(nil), 1}
		if firstFails {
			done, refused = refused, done
		}
		s.fastPath.executed(s, id, &done)
		s.fastPath.executed(s, id, &refused)
		if got := len(s.Violations) > 0; got != firstFails {
			t.Errorf("the first fails: %t; violations %v", firstFails, s.Violations)
		}
	}
}
