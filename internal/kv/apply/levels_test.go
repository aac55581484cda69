package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/level"
)

// atLevels runs a test on stores with a row for each result, and with packs of them.
func atLevels(t *testing.T, test func(t *testing.T, at level.Level)) {
	for _, at := range []level.Level{level.First, level.Own} {
		t.Run(fmt.Sprintf("level %d", at), func(t *testing.T) { test(t, at) })
	}
}

// newLeveledBench is a member of voters 1 and 2 and learner 3, whose build knows so much.
func newLeveledBench(t *testing.T, own level.Level) *bench {
	b := &bench{t: t, fs: vfs.NewCrashableMem()}
	b.openEngine()
	config := consensus.Config{Voters: []consensus.MemberID{1, 2}, Learners: []consensus.MemberID{3},
		Members: []consensus.Member{{ID: 1}, {ID: 2, Name: "two"}, {ID: 3}}}
	if err := apply.Bootstrap(b.eng, 77, config); err != nil {
		t.Fatal(err)
	}
	b.openAs(own)
	return b
}

func (b *bench) openAs(own level.Level) {
	b.t.Helper()
	var err error
	if b.m, err = apply.Open(b.eng, apply.Options{Level: own}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) knows(member uint64, l level.Level) {
	b.t.Helper()
	op := &kv.PublishOp{Member: member, Name: "m", Version: "3.7.1", Build: "b", Level: l}
	if res := b.do(kv.Command{Publish: op}); res.Err != nil {
		b.t.Fatal(res.Err)
	}
}

func raise(l level.Level) kv.Command { return kv.Command{Raise: &kv.RaiseOp{Level: l}} }

func addUser(name string) kv.Command {
	return kv.Command{Auth: &auth.Change{Kind: auth.UserAdd, User: name, Hash: []byte("h")}}
}

// Ensure that the active level rises only when all voters and learners know it, never falls, and outlives a restart.
func TestMachine_Apply_raise(t *testing.T) {
	b := newLeveledBench(t, 0)
	refused := func(what string, names ...string) {
		t.Helper()
		if res := b.do(raise(level.Users)); !errors.Is(res.Err, kv.ErrBadCommand) || b.m.ActiveLevel() != level.First {
			t.Fatalf("%s: level %d, %v", what, b.m.ActiveLevel(), res.Err)
		}
		held := level.HeldError{Needs: level.Users, By: b.m.HeldBack(level.Users)}
		for _, name := range names {
			if !strings.Contains(held.Error(), name) {
				t.Errorf("%s: %q is not in %q", what, name, held.Error())
			}
		}
		if b.m.CommonLevel() != level.First {
			t.Errorf("%s: common level %d", what, b.m.CommonLevel())
		}
	}
	refused("nobody has started", "1 (never started), two (never started), 3")
	b.knows(1, level.Own)
	b.do(kv.Command{Publish: &kv.PublishOp{Member: 2, Name: "zwei", Version: "3.7.1"}})
	b.knows(3, level.Own)
	refused("one is of an earlier build", "zwei (an earlier build, level 1)")
	b.knows(2, level.Own)
	b.knows(3, level.First)
	refused("a learner went back", "(an earlier build")
	b.knows(3, level.Own)
	if b.m.CommonLevel() != level.Own || len(b.m.HeldBack(level.Users)) > 0 {
		t.Fatalf("common level %d, held back by %v", b.m.CommonLevel(), b.m.HeldBack(level.Users))
	}
	res := b.do(raise(level.Users))
	if durable, err := b.m.DurableApplied(); err != nil || durable.Index != b.index {
		t.Errorf("after a power loss an earlier build starts from %v, before the level, %v", durable, err)
	}
	if res.Err != nil || b.m.ActiveLevel() != level.Users {
		t.Fatalf("level %d, %v", b.m.ActiveLevel(), res.Err)
	}
	b.knows(3, level.First)
	for _, again := range []level.Level{level.Users, level.First, 0} {
		if res := b.do(raise(again)); res.Err != nil || b.m.ActiveLevel() != level.Users {
			t.Errorf("to %d once more: level %d, %v", again, b.m.ActiveLevel(), res.Err)
		}
	}
	b.open()
	if b.m.ActiveLevel() != level.Users {
		t.Errorf("level %d after a restart", b.m.ActiveLevel())
	}
}

// Ensure that a removed member does not hold back the level: the configuration by protocol activate that removed it stays joint in
// its form, also once it has settled.
func TestMachine_Apply_raiseAfterActivate(t *testing.T) {
	b := newLeveledBench(t, 0)
	for member := range uint64(3) {
		b.knows(member+1, level.Own)
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
	if b.m.CommonLevel() != level.Own {
		t.Errorf("held back by %v while the change is under way", b.m.HeldBack(level.Own))
	}
	id := consensus.ConfigID{Index: e.Index, Term: e.Term}
	e = b.entry(put("a", ""))
	e.Kind, e.Payload = consensus.EntryNoop, consensus.AppendConfigID(nil, id)
	b.apply(*e)
	if _, removed := b.m.Removed(2); !removed || b.m.CommonLevel() != level.Own {
		t.Errorf("removed: %t, held back by %v", removed, b.m.HeldBack(level.Own))
	}
	if res := b.do(raise(level.Own)); res.Err != nil || b.m.ActiveLevel() != level.Own {
		t.Errorf("level %d, %v", b.m.ActiveLevel(), res.Err)
	}
}

// Ensure that commands below their level change nothing, and leave the result and the chain that they leave with a build which
// does not know them.
func TestMachine_Apply_belowLevel(t *testing.T) {
	b, twin := newLeveledBench(t, 0), newLeveledBench(t, 0)
	for _, command := range []kv.Command{
		addUser("alice"), {Put: &kv.PutOp{Key: []byte("k")}, By: auth.Credentials{User: "alice", Revision: 1}},
		{Put: &kv.PutOp{Key: []byte("k")}, By: auth.Credentials{Member: true}}, raise(level.Users),
	} {
		e := b.entry(command)
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
	twin.apply(b.log...)
	if b.m.Chain() != twin.m.Chain() {
		t.Error("another chain")
	}
	for id := range uint64(3) {
		b.knows(id+1, level.Own)
	}
	b.do(raise(level.Users))
	if res := b.do(addUser("alice")); res.Err != nil || len(b.m.Users().Users()) != 1 {
		t.Errorf("at its level: %v", res.Err)
	}
}

// Ensure that a build which knows less than the cluster uses neither applies nor opens anything of it, and says what to do.
func TestOpen_belowLevel(t *testing.T) {
	b := newLeveledBench(t, level.First)
	for id := range uint64(3) {
		b.knows(id+1, level.Own) // it ran with a later build before
	}
	var low *level.TooLowError
	if _, err := b.m.Apply([]consensus.Entry{*b.entry(raise(level.Users))}); !errors.As(err, &low) {
		t.Fatalf("it goes on: %v", err)
	}
	b.openAs(level.First)
	if b.m.ActiveLevel() != level.First {
		t.Fatalf("level %d", b.m.ActiveLevel())
	}
	b.openAs(level.Users)
	b.apply(b.log[len(b.log)-1])
	if _, err := apply.Open(b.eng, apply.Options{Level: level.First}); !errors.As(err, &low) || !errors.Is(err, apply.ErrNewer) ||
		!strings.Contains(err.Error(), "start the build that ran here before, or a later one") {
		t.Errorf("it is opened: %v", err)
	}
}

// Ensure that a command which this build does not know ends the member, and changes nothing.
func TestMachine_Apply_unknownCommand(t *testing.T) {
	users := addUser("alice")
	for name, row := range map[string]struct {
		own     level.Level
		payload []byte
	}{
		"a later format":        {level.Own, []byte{3, 1, 0, 1, 'k', 0}},
		"a later kind":          {level.Own, []byte{1, 15}},
		"a kind inside of txns": {level.Own, []byte{1, 11, 0}},
		"nothing":               {level.Own, nil},
		"of a later level":      {level.First, users.Append(nil)},
	} {
		b := newLeveledBench(t, row.own)
		entries := []consensus.Entry{*b.entry(put("k", "v")), {Index: 2, Term: 1, Kind: consensus.EntryCommand, Payload: row.payload}}
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

// named counts the changes that name the version which they replace, and those that do not.
func (b *bench) named() (with, without int) {
	b.t.Helper()
	it, err := b.eng.NewIter([]byte{'r'}, []byte{'r' + 1})
	if err != nil {
		b.t.Fatal(err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		if it.Value()[0] >= 4 {
			with++
		} else {
			without++
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		b.t.Fatal(err)
	}
	return with, without
}

// Ensure that what builds below level.History do not read is written from the entry on that raises it, within its batch, and not
// before: neither names in changes, nor values that lie apart. All that was written before is deleted like the rest.
func TestMachine_Apply_history(t *testing.T) {
	b := &bench{t: t, fs: vfs.NewCrashableMem(), lsm: true}
	b.openEngine()
	if err := apply.Bootstrap(b.eng, 77, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("v", 4096)
	wrote := func(what string, with, without int, apart bool) {
		t.Helper()
		if err := b.eng.Flush(); err != nil {
			t.Fatal(err)
		}
		names, err := b.fs.List("store")
		if err != nil {
			t.Fatal(err)
		}
		blob := func(name string) bool { return strings.HasSuffix(name, ".blob") }
		gotWith, gotWithout := b.named()
		if got := slices.ContainsFunc(names, blob); gotWith != with || gotWithout != without || got != apart {
			t.Fatalf("%s: %d changes with a name, %d without, values apart: %v", what, gotWith, gotWithout, got)
		}
	}
	b.openAs(level.Users)
	b.do(put("k", big))
	b.do(put("k", big))
	wrote("an older build", 0, 2, false)
	b.openAs(level.Own) // upgraded, and back once more
	b.knows(1, level.Users)
	b.do(put("k", big))
	b.do(raise(level.Users))
	wrote("a present build", 0, 3, false)
	b.openAs(level.Users)
	if change, _, err := b.m.Store().EventsSince(mvcc.EventQuery{From: 2}); err != nil || len(change) != 3 {
		t.Errorf("an older build reads %d changes, %v", len(change), err)
	}
	b.do(put("k", big))
	b.openAs(level.Own)
	b.knows(1, level.Own)
	b.apply(*b.entry(put("k", big)), *b.entry(raise(level.Own)), *b.entry(put("k", big)))
	b.do(put("k", big))
	b.open()
	b.do(put("k", big))
	wrote("at the level", 3, 5, true)
	b.do(kv.Command{Compact: &kv.CompactOp{Revision: b.m.Store().Revision()}})
	if done, err := b.m.Store().CompactStep(100); err != nil || !done {
		t.Fatal(done, err)
	}
	wrote("after a compaction", 1, 0, true)
	if got := b.m.Store().Size().Versions; got != 1 || string(b.get("k").Value) != big {
		t.Errorf("%d versions are left", got)
	}
	if err := b.eng.Close(); err != nil {
		t.Fatal(err)
	}
}

// changeRows counts the rows of single changes, and those of several.
func (b *bench) changeRows() (single, packs int) {
	b.t.Helper()
	it, err := b.eng.NewIter([]byte{'r'}, []byte{'r' + 1})
	if err != nil {
		b.t.Fatal(err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		if it.Value()[0] == 8 {
			packs++
		} else {
			single++
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		b.t.Fatal(err)
	}
	return single, packs
}

// Ensure that changes are packed from the entry on that raises level.Changes, within its batch, and not before; that a build which does
// not know the level refuses the store then, and says what to do; and that all rows are read and deleted, whatever their form.
func TestMachine_Apply_changes(t *testing.T) {
	b := &bench{t: t, fs: vfs.NewCrashableMem(), lsm: true}
	b.openEngine()
	if err := apply.Bootstrap(b.eng, 77, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	wrote := func(what string, single, packs int) {
		t.Helper()
		gotSingle, gotPacks := b.changeRows()
		if gotSingle != single || gotPacks != packs {
			t.Fatalf("%s: %d rows of single changes, and %d of several", what, gotSingle, gotPacks)
		}
		rows := int(b.m.Store().Revision()) - 1
		if changes, _, err := b.m.Store().EventsSince(mvcc.EventQuery{From: 2}); err != nil || len(changes) != rows {
			t.Fatalf("%s: %d of %d changes are read, %v", what, len(changes), rows, err)
		}
	}
	two := func() { b.apply(*b.entry(put("k", "v")), *b.entry(put("l", "v"))) }
	b.openAs(level.History)
	b.knows(1, level.History)
	b.do(raise(level.History))
	two()
	b.openAs(level.Own) // upgraded, and back once more
	two()
	wrote("below the level", 4, 0)
	b.openAs(level.History)
	two()
	b.openAs(level.Own)
	b.knows(1, level.Own)
	b.apply(*b.entry(put("k", "v")), *b.entry(raise(level.Changes)), *b.entry(put("k", "v")), *b.entry(put("l", "v")))
	wrote("in the batch that raises the level", 7, 1)
	var low *level.TooLowError
	if _, err := apply.Open(b.eng, apply.Options{Level: level.History}); !errors.As(err, &low) || !errors.Is(err, apply.ErrNewer) ||
		!strings.Contains(err.Error(), "start the build that ran here before, or a later one") {
		t.Errorf("a build that does not know packs opens the store: %v", err)
	}
	b.openAs(level.Own)
	two()
	wrote("at the level", 7, 2)
	b.do(kv.Command{Compact: &kv.CompactOp{Revision: b.m.Store().Revision() - 2}}) // within a row
	for _, want := range []int{4, 2} {
		for done := false; !done; {
			var err error
			if done, err = b.m.Store().CompactStep(2); err != nil {
				t.Fatal(err)
			}
		}
		if single, packs := b.changeRows(); single != 0 || packs != want/2 || b.m.Store().Size().Versions != int64(want) {
			t.Errorf("%d and %d rows are left, and %d versions; want %d", single, packs, b.m.Store().Size().Versions, want)
		}
		b.do(kv.Command{Compact: &kv.CompactOp{Revision: b.m.Store().Revision()}})
	}
	if err := b.eng.Close(); err != nil {
		t.Fatal(err)
	}
}

// userRows are the rows of all users.
func (b *bench) userRows() (rows []auth.Row) {
	b.t.Helper()
	first := apply.UserRow("")[:2]
	it, err := b.eng.NewIter(first, []byte{first[0], first[1] + 1})
	if err != nil {
		b.t.Fatal(err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		rows = append(rows, auth.Row{Key: bytes.Clone(it.Key()[2:]), Value: bytes.Clone(it.Value())})
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		b.t.Fatal(err)
	}
	return rows
}

// Ensure that a store which has users is at their level, though a build from before there were levels wrote it; so is one that was
// restored, and no other.
func TestOpen_usersWithoutLevel(t *testing.T) {
	for _, withUsers := range []bool{true, false} {
		b := &bench{t: t, fs: vfs.NewCrashableMem()}
		b.openEngine()
		l := apply.NewLoader(b.eng)
		if withUsers {
			filled := newLeveledBench(t, 0)
			for id := range uint64(3) {
				filled.knows(id+1, level.Own)
			}
			filled.do(raise(level.Users))
			filled.do(addUser("root"))
			l.AddUsers(filled.userRows())
		}
		if _, err := l.Finish(1, 0); err != nil {
			t.Fatal(err)
		}
		base := consensus.Founding(consensus.Config{Voters: []consensus.MemberID{1}})
		if err := apply.Found(b.eng, 77, &base); err != nil {
			t.Fatal(err)
		}
		want := level.First
		if withUsers {
			want = level.Users
		}
		b.open()
		if b.m.ActiveLevel() != want {
			t.Errorf("users %v: level %d", withUsers, b.m.ActiveLevel())
		}
		_, err := apply.Open(b.eng, apply.Options{Level: level.First})
		if errors.Is(err, apply.ErrNewer) != withUsers {
			t.Errorf("users %v: a build that does not know them: %v", withUsers, err)
		}
	}
}
