package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// newLeveledBench is a member of voters 1 and 2 and learner 3, whose build knows level own, in a cluster with the next level.
func newLeveledBench(t *testing.T, own level.Level) *bench {
	b := &bench{t: t, fs: filestest.NewCrashableMem()}
	b.openEngine()
	config := consensus.Config{Voters: []consensus.MemberID{1, 2}, Learners: []consensus.MemberID{3},
		Members: []consensus.Member{{ID: 1}, {ID: 2, Name: "two"}, {ID: 3}}}
	if err := apply.Bootstrap(b.eng, 77, config); err != nil {
		t.Fatal(err)
	}
	b.openAs(own)
	b.policy("now")
	return b
}

func (b *bench) policy(text string) {
	b.t.Helper()
	p, err := level.ParsePolicy(text)
	if err != nil {
		b.t.Fatal(err)
	}
	if res := b.do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: p, Of: b.m.LevelView()}}); res.Err != nil {
		b.t.Fatal(res.Err)
	}
}

func (b *bench) openAs(own level.Level) {
	b.t.Helper()
	b.openWithOptions(apply.Options{Level: own, Needs: nextlevel.Needs})
}

func (b *bench) openWithOptions(options apply.Options) {
	b.t.Helper()
	var err error
	if b.m, err = apply.Open(b.eng, options); err != nil {
		b.t.Fatal(err)
	}
}

// putsToo is nextlevel.Needs with puts at the next level, too: some of those are answered before they are applied.
func putsToo(payload []byte) (level.Level, bool) {
	if c, err := kv.DecodeCommand(payload); err == nil && c.Put != nil {
		return nextlevel.Level, true
	}
	return nextlevel.Needs(payload)
}

func (b *bench) knows(member uint64, l level.Level) {
	b.t.Helper()
	op := &kv.PublishOp{Member: member, Name: "m", Version: "3.7.1", Build: "b", Level: l}
	if res := b.do(kv.Command{Publish: op}); res.Err != nil {
		b.t.Fatal(res.Err)
	}
}

// raise is what a leader proposes now.
func (b *bench) raise(l level.Level) kv.Command {
	return kv.Command{Raise: &kv.RaiseOp{Level: l, Of: b.m.LevelView()}}
}

func addUser(name string) kv.Command {
	return kv.Command{Auth: &auth.Change{Kind: auth.UserAdd, User: name, Hash: []byte("h")}}
}

// Ensure that the active level rises only when all voters and learners know it, never falls, and outlives a restart.
func TestMachine_Apply_raise(t *testing.T) {
	b := newLeveledBench(t, nextlevel.Level)
	refused := func(what string, active, common level.Level, names ...string) {
		t.Helper()
		if res := b.do(b.raise(nextlevel.Level)); !errors.Is(res.Err, kv.ErrBadCommand) || b.m.ActiveLevel() != active {
			t.Fatalf("%s: level %d, %v", what, b.m.ActiveLevel(), res.Err)
		}
		held := level.HeldError{Needs: nextlevel.Level, By: b.m.HeldBack(nextlevel.Level)}
		for _, name := range names {
			if !strings.Contains(held.Error(), name) {
				t.Errorf("%s: %q is not in %q", what, name, held.Error())
			}
		}
		if b.m.CommonLevel() != common {
			t.Errorf("%s: common level %d, want %d", what, b.m.CommonLevel(), common)
		}
	}
	build := func(name, build string, l level.Level) string {
		return fmt.Sprintf("%s (build %s, level %d)", name, build, l)
	}
	refused("nobody has started", level.First, level.First, "1 (never started), two (never started), 3")
	b.knows(1, nextlevel.Level)
	b.do(kv.Command{Publish: &kv.PublishOp{Member: 2, Name: "zwei", Version: "3.7.1", Build: "a", Level: level.Own}})
	b.knows(3, nextlevel.Level)
	refused("one is of an earlier build", level.First, level.Own, build("zwei", "a", level.Own))
	if res := b.do(b.raise(level.Own)); res.Err != nil || b.m.ActiveLevel() != level.Own {
		t.Fatalf("the level of the earlier build: level %d, %v", b.m.ActiveLevel(), res.Err)
	}
	b.knows(2, nextlevel.Level)
	b.knows(3, level.Own)
	refused("a learner went back", level.Own, level.Own, build("m", "b", level.Own))
	b.knows(3, nextlevel.Level)
	if b.m.CommonLevel() != nextlevel.Level || len(b.m.HeldBack(nextlevel.Level)) > 0 {
		t.Fatalf("common level %d, held back by %v", b.m.CommonLevel(), b.m.HeldBack(nextlevel.Level))
	}
	res := b.do(b.raise(nextlevel.Level))
	if durable, err := b.m.DurableApplied(); err != nil || durable.Index != b.index {
		t.Errorf("after a power loss an earlier build starts from %v, before the level, %v", durable, err)
	}
	if res.Err != nil || b.m.ActiveLevel() != nextlevel.Level {
		t.Fatalf("level %d, %v", b.m.ActiveLevel(), res.Err)
	}
	b.knows(3, level.Own)
	for _, again := range []level.Level{nextlevel.Level, level.Own, 0} {
		if res := b.do(b.raise(again)); res.Err != nil || b.m.ActiveLevel() != nextlevel.Level {
			t.Errorf("to %d once more: level %d, %v", again, b.m.ActiveLevel(), res.Err)
		}
	}
	b.openAs(nextlevel.Level)
	if b.m.ActiveLevel() != nextlevel.Level {
		t.Errorf("level %d after a restart", b.m.ActiveLevel())
	}
}

// Ensure that a removed member does not hold back the level: the configuration by protocol activate that removed it stays joint
// in its form, even once it has settled.
func TestMachine_Apply_raiseAfterActivate(t *testing.T) {
	b := newLeveledBench(t, nextlevel.Level)
	for member := range uint64(3) {
		b.knows(member+1, nextlevel.Level)
	}
	change := consensus.ConfigChange{
		Protocol: consensus.ProtocolActivate,
		Config: consensus.Config{Voters: []consensus.MemberID{1}, Outgoing: []consensus.MemberID{1, 2},
			Learners: []consensus.MemberID{3}, Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}}},
		Tombs: []consensus.MemberID{2},
	}
	e := b.entry(put("a", ""))
	e.Kind, e.Payload = consensus.EntryConfig, consensus.AppendConfigChange(nil, &change)
	b.apply(*e)
	if b.m.CommonLevel() != nextlevel.Level {
		t.Errorf("held back by %v while the change is under way", b.m.HeldBack(nextlevel.Level))
	}
	id := consensus.ConfigID{Index: e.Index, Term: e.Term}
	e = b.entry(put("a", ""))
	e.Kind, e.Payload = consensus.EntryNoop, consensus.AppendConfigID(nil, id)
	b.apply(*e)
	if _, removed := b.m.Removed(2); !removed || b.m.CommonLevel() != nextlevel.Level {
		t.Errorf("removed: %t, held back by %v", removed, b.m.HeldBack(nextlevel.Level))
	}
	if res := b.do(b.raise(nextlevel.Level)); res.Err != nil || b.m.ActiveLevel() != nextlevel.Level {
		t.Errorf("level %d, %v", b.m.ActiveLevel(), res.Err)
	}
}

// Ensure that commands below their level change nothing, and leave the same result and chain as on a build that does not know
// them.
func TestMachine_Apply_belowLevel(t *testing.T) {
	b, twin := newLeveledBench(t, nextlevel.Level), newLeveledBench(t, nextlevel.Level)
	for _, one := range []*bench{b, twin} {
		one.openWithOptions(apply.Options{Level: nextlevel.Level, Needs: putsToo})
	}
	id := openSession(b, 1, 5)
	for i, command := range []kv.Command{
		addUser("alice"), put("k", "v"), {Put: &kv.PutOp{Key: []byte("k")}, By: auth.Credentials{User: "alice", Revision: 1}},
		{Put: &kv.PutOp{Key: []byte("k")}, By: auth.Credentials{Member: true}}, b.raise(nextlevel.Level),
	} {
		e := b.entry(command)
		e.Proposal = id(uint64(i) + 2)
		e.ExactRevision = uint64(b.m.Store().Revision()) + 1
		if _, sure := b.m.Evaluate(e); sure {
			t.Errorf("%+v is answered before it is applied", command)
		}
		e.ExactRevision = 0
		if res := b.apply(*e)[0]; !errors.Is(res.Err, kv.ErrBadCommand) || res.Revision != 1 {
			t.Errorf("%+v: %+v", command, res)
		}
	}
	if len(b.m.Users().Users()) > 0 || b.get("k") != nil {
		t.Error("something was changed")
	}
	twin.apply(b.log[1:]...) // it has the policy
	if b.m.Chain() != twin.m.Chain() {
		t.Error("another chain")
	}
	for id := range uint64(3) {
		b.knows(id+1, nextlevel.Level)
	}
	b.do(b.raise(nextlevel.Level))
	if res := b.do(addUser("alice")); res.Err != nil || len(b.m.Users().Users()) != 1 {
		t.Errorf("at its level: %v", res.Err)
	}
	e := b.entry(put("k", "v"))
	e.Proposal = id(99)
	e.ExactRevision = uint64(b.m.Store().Revision()) + 1
	if _, sure := b.m.Evaluate(e); !sure {
		t.Error("at its level, a put is not answered before it is applied")
	}
}

// Ensure that a build which knows less than the active level neither applies nor opens anything of the cluster, and says what
// to do.
func TestOpen_belowLevel(t *testing.T) {
	b := newLeveledBench(t, level.Own)
	for id := range uint64(3) {
		b.knows(id+1, nextlevel.Level) // it ran a later build before
	}
	var low *level.TooLowError
	if _, err := b.m.Apply([]consensus.Entry{*b.entry(b.raise(nextlevel.Level))}); !errors.As(err, &low) {
		t.Fatalf("it goes on: %v", err)
	}
	b.openAs(level.Own)
	if b.m.ActiveLevel() != level.First {
		t.Fatalf("level %d", b.m.ActiveLevel())
	}
	b.openAs(nextlevel.Level)
	b.apply(b.log[len(b.log)-1])
	if _, err := apply.Open(b.eng, apply.Options{Level: level.Own}); !errors.As(err, &low) || !errors.Is(err, apply.ErrNewer) ||
		!strings.Contains(err.Error(), "start the build that ran here before, or a later one") {
		t.Errorf("it is opened: %v", err)
	}
}

// Ensure that a command which this build does not know stops the member, and changes nothing.
func TestMachine_Apply_unknownCommand(t *testing.T) {
	users := addUser("alice")
	for name, row := range map[string]struct {
		own     level.Level
		payload []byte
	}{
		"a later format":        {nextlevel.Level, []byte{3, 1, 0, 1, 'k', 0}},
		"a later kind":          {nextlevel.Level, []byte{1, 200}},
		"a kind inside of txns": {nextlevel.Level, []byte{1, 11, 0}},
		"nothing":               {nextlevel.Level, nil},
		"of a later level":      {level.Own, users.Append(nil)},
		"a change of users":     {nextlevel.Level, []byte{1, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0}},
		"an alarm":              {nextlevel.Level, []byte{1, 7, 1, 3, 0}},
		"a flag":                {nextlevel.Level, []byte{1, 1, 16, 1, 'k', 0}},
		"a compare target":      {nextlevel.Level, []byte{1, 3, 1, 5, 0, 1, 'k', 0, 0, 0, 0, 0}},
		"an operation":          {nextlevel.Level, []byte{1, 3, 0, 1, 200, 0, 0, 0, 0}},
	} {
		b := newLeveledBench(t, row.own)
		first := b.entry(put("k", "v"))
		entries := []consensus.Entry{*first, {Index: first.Index + 1, Term: 1, Kind: consensus.EntryCommand, Payload: row.payload}}
		_, err := b.m.Apply(entries)
		if !errors.Is(err, apply.ErrUnknownCommand) || !strings.Contains(err.Error(), entries[1].Position().String()) {
			t.Errorf("%s: %v", name, err)
		}
		if b.get("k") != nil {
			t.Errorf("%s: a part of the batch is visible", name)
		}
		if _, err := b.m.Apply(entries[:1]); !errors.Is(err, apply.ErrUnknownCommand) {
			t.Errorf("%s: it goes on: %v", name, err)
		}
	}
}
