package member

import (
	"context"
	"log/slog"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
)

// levels holds back commands that some members do not know, and raises the active feature level once all members know them.
// Safety does not depend on it: an entry that is applied before its level is active changes nothing (package kv/apply).
type levels struct {
	stores    *datadir.Stores
	readIndex func(ctx context.Context) error
	propose   func(ctx context.Context, command *kv.Command) (kv.Result, error)
	logger    *slog.Logger
	told      string // last error that keepRaised logged
}

// active reports whether the active level is the one that a command needs, or a later one.
func (l *levels) active(needs level.Level) bool { return l.stores.Latest().ActiveLevel() >= needs }

// await returns once the level that a command needs is active. If all members know that level, it raises the active level; else
// the error is a level.HeldError.
func (l *levels) await(ctx context.Context, needs level.Level) error {
	if l.active(needs) {
		return nil
	}
	if err := l.readIndex(ctx); err != nil { // other members may have published their levels, or raised the active one
		return err
	}
	machine := l.stores.Latest()
	held := machine.HeldBack(needs)
	if machine.ActiveLevel() < needs && len(held) == 0 {
		result, err := l.propose(ctx, &kv.Command{Raise: &kv.RaiseOp{Level: needs}})
		if err != nil {
			return err
		}
		if result.Err == nil {
			return nil
		}
		held = machine.HeldBack(needs) // a member was added meanwhile
	}
	if machine.ActiveLevel() >= needs {
		return nil
	}
	return &level.HeldError{Needs: needs, Active: machine.ActiveLevel(), By: held}
}

// keepRaised raises the active level to the highest one that all members know. The leader calls it now and then.
func (l *levels) keepRaised(ctx context.Context) {
	machine := l.stores.Latest()
	active, common := machine.ActiveLevel(), machine.CommonLevel()
	if common > active {
		attempt, cancel := context.WithTimeout(ctx, promotePatience)
		defer cancel()
		result, err := l.propose(attempt, &kv.Command{Raise: &kv.RaiseOp{Level: common}})
		if err == nil && result.Err == nil {
			l.logger.Info("raised the feature level", "from", int(active), "to", int(common), "enables", common.Enables())
		}
		return
	}
	text := ""
	if own := machine.OwnLevel(); active < own {
		held := level.HeldError{Needs: own, Active: active, By: machine.HeldBack(own)}
		text = held.Error()
	}
	if text != l.told && text != "" {
		l.logger.Info("the feature level is held back", "why", text)
	}
	l.told = text
}
