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

// Ensure that a command about levels which names a member that was removed since its proposer looked changes nothing, as at the
// members, for whom a removed member has published nothing.
func TestLevels_apply_removedMember(t *testing.T) {
	config := consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: []consensus.Member{{ID: 1}, {ID: 2}}}
	for _, row := range []struct {
		ids  []uint64
		want error
	}{{[]uint64{1, 2}, nil}, {[]uint64{1, 2, 3}, kv.ErrBadCommand}} {
		l := levels{published: map[consensus.MemberID]level.Level{1: level.First, 2: level.First, 3: level.First}, least: level.First}
		_, err := l.apply(before{config: &config}, &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Initial: true,
			Policy: level.Policy{Kind: level.PolicyNow}, Of: kv.LevelView{IDs: row.ids}}})
		if !errors.Is(err, row.want) || (l.born != 0) != (row.want == nil) {
			t.Errorf("members %v: %v, born at %d", row.ids, err, l.born)
		}
	}
}

// Ensure that the model holds the level while a downgrade is under way, lets it end by an operator's word, by a rise, or once all members
// run the release, and then has the former policy, and no soak.
func TestLevels_apply_downgrade(t *testing.T) {
	const next = nextlevel.Level
	config := consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: []consensus.Member{{ID: 1}, {ID: 2}}}
	former := level.Policy{Kind: level.PolicySoak, Seconds: 2}
	hold := level.Policy{Kind: level.PolicyHold}
	target := level.Release{Major: 1}
	var l *levels
	do := func(c kv.Command) error {
		of := kv.LevelView{IDs: []uint64{1, 2}, Generation: l.changed}
		switch {
		case c.Raise != nil:
			c.Raise.Of = of
		case c.LevelPolicy != nil:
			c.LevelPolicy.Of = of
		case c.Soak != nil:
			c.Soak.Of = of
		}
		_, err := l.apply(before{config: &config}, &c)
		return err
	}
	runs := func(build string, known level.Level) {
		for member := range uint64(2) {
			_ = do(kv.Command{Publish: &kv.PublishOp{Member: member + 1, Build: build, Level: known}})
		}
	}
	begin := func() error { return do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: hold, Target: target}}) }
	returned := func() error { return do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Returned: true}}) }
	for name, end := range map[string]func() error{
		"all return":      func() error { runs("1.0.3", level.First); return returned() },
		"it is cancelled": func() error { return do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: former}}) },
		"the level rises": func() error { return do(kv.Command{Raise: &kv.RaiseOp{Level: next, Finalize: true}}) },
	} {
		l = &levels{}
		if err := begin(); !errors.Is(err, kv.ErrBadCommand) {
			t.Errorf("a downgrade begins without a policy: %v", err)
		}
		runs("1.0.0", level.First)
		_ = do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: former, Initial: true}})
		runs("1.1.0", next)
		_ = do(kv.Command{Soak: &kv.SoakOp{Level: next}})
		_ = do(kv.Command{Soak: &kv.SoakOp{Level: next, Seconds: 9}})
		if err := returned(); !errors.Is(err, kv.ErrBadCommand) {
			t.Errorf("none is under way, and ends: %v", err)
		}
		if begin() != nil || !errors.Is(begin(), kv.ErrBadCommand) || l.policy != hold {
			t.Errorf("it begins, once: %+v", l.rise())
		}
		early, raise := returned(), do(kv.Command{Raise: &kv.RaiseOp{Level: next}})
		if !errors.Is(early, kv.ErrBadCommand) || !errors.Is(raise, kv.ErrBadCommand) {
			t.Errorf("while it lasts: ends early %v, raises %v", early, raise)
		}
		if err := end(); err != nil || l.policy != former || l.seconds != 0 || l.rise().Target != (level.Release{}) {
			t.Errorf("%s: %v, %+v", name, err, l.rise())
		}
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
