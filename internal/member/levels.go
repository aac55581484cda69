package member

import (
	"context"
	"log/slog"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/raising"
)

// levels holds back commands that some members do not know, and raises the active feature level once all members know them and
// the policy allows it (package raising). Safety does not depend on it: an entry that is applied before its level is active
// changes nothing (package kv/apply).
type levels struct {
	stores    *datadir.Stores
	clock     env.Clock
	policy    level.Policy // of this member's flag
	readIndex func(ctx context.Context) error
	propose   func(ctx context.Context, command *kv.Command) (kv.Result, error)
	logger    *slog.Logger
	verdicts  *verdicts
	raiser    raising.Raiser // of the goroutine that calls keepRaised and restRaiser
	told      string         // last reason that keepRaised logged
}

// active reports whether the active level is the one that a command needs, or a later one.
func (l *levels) active(needs level.Level) bool { return l.stores.Latest().ActiveLevel() >= needs }

// await returns once the level that a command needs is active. It raises the active level if all members know that level and
// the policy allows it; else the error is a level.HeldError.
func (l *levels) await(ctx context.Context, needs level.Level) error {
	if l.active(needs) {
		return nil
	}
	if err := l.readIndex(ctx); err != nil { // other members may have published their levels, or raised the active one
		return err
	}
	machine := l.stores.Latest()
	rise := machine.Rise()
	if machine.ActiveLevel() < needs && len(machine.HeldBack(needs)) == 0 && rise.Allows(needs) {
		result, err := l.propose(ctx, &kv.Command{Raise: &kv.RaiseOp{Level: needs, Of: machine.LevelView()}})
		if err != nil {
			return err
		}
		if result.Err == nil {
			return nil
		}
	}
	if machine.ActiveLevel() >= needs {
		return nil
	}
	return heldError(machine, needs)
}

// heldError says why a level is not active.
func heldError(machine *apply.Machine, needs level.Level) *level.HeldError {
	rise := machine.Rise()
	return &level.HeldError{Needs: needs, Active: machine.ActiveLevel(), By: machine.HeldBack(needs), Why: rise.Waits(needs)}
}

// restRaiser ends what keepRaised counted: this member does not lead.
func (l *levels) restRaiser() { l.raiser.Rest() }

// keepRaised raises the active level to the highest one that all members know, when the policy allows it. The leader calls it
// now and then, with the status of its core.
func (l *levels) keepRaised(ctx context.Context, status raft.Status) {
	machine := l.stores.Latest()
	command, due := l.raiser.Look(l.clock.Now(), &raising.View{
		Active: machine.ActiveLevel(), Common: machine.CommonLevel(), Rise: machine.Rise(), Flag: l.policy,
		Members: machine.LevelView(), AllPublished: len(machine.HeldBack(level.First)) == 0,
		Returned: machine.HasReturned(), Paused: l.verdicts.paused(machine, &status),
	})
	if due {
		attempt, cancel := context.WithTimeout(ctx, promotePatience)
		defer cancel()
		former := machine.ActiveLevel()
		result, err := l.propose(attempt, &command)
		if raise := command.Raise; raise != nil && err == nil && result.Err == nil && former < machine.ActiveLevel() {
			l.logger.Info("raised the feature level", "to", int(raise.Level), "enables", raise.Level.Enables())
		}
	}
	l.tell(machine)
}

// tell logs why the active level is below that of this build, once for each reason.
func (l *levels) tell(machine *apply.Machine) {
	own, text := machine.OwnLevel(), ""
	if machine.ActiveLevel() < own {
		if held := heldError(machine, own); len(held.By) > 0 {
			text = held.Error()
		} else {
			rise := machine.Rise()
			text = "all members know it; the policy is " + rise.Policy.String() + ": see `quorate upgrade status`"
		}
	}
	if text != l.told && text != "" {
		l.logger.Info("the feature level is held back", "why", text)
	}
	l.told = text
}
