package replay_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/history"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
)

// forked is a place to which a cluster shipped, and again after all its volumes were rolled back.
type forked struct {
	before, after *member
	at            consensus.Index // the last entry of both
	ends          [2]backup.Head  // of the former history, and of the later one
}

// fork ships some commands, rolls the cluster back to about half of them, or to where all have it, and ships others, in an epoch.
func fork(t *testing.T, seed int64, locked bool, more int, epoch uint64) *forked {
	t.Helper()
	f := &forked{before: newMember(t, seed, openMem), after: newMember(t, seed+100, openMem)}
	a, b := f.before, f.after
	if locked {
		a.encrypt()
	}
	var commands []kv.Command
	write := func(m *member, n int) {
		for range n {
			c := m.command()
			commands = append(commands, c)
			m.apply(c)
		}
		m.settle()
	}
	write(a, 30)
	write(a, 30)
	f.ends[0], _ = a.catalog().Newest()
	for _, s := range a.catalog().Segments {
		if s.End.Index < 40 {
			f.at = s.End.Index
		}
	}
	sums := map[consensus.Index]uint64{}
	for _, c := range commands[:f.at] {
		b.apply(c)
		sums[b.index] = b.machine.Chain().Sum
	}
	b.now, b.place, b.performs.Store = a.now, a.place, a.place
	b.performs.Lock, b.reads = a.performs.Lock, a.reads
	found := &ship.Found{Catalog: a.catalog(), Applied: b.index, Now: b.now,
		Own: func(i consensus.Index) (uint64, bool) { sum, known := sums[i]; return sum, known }}
	if locked {
		found.Secrets = []backup.Secret{a.performs.Lock.Secret}
	}
	b.shipper = ship.New(ship.Config{Cluster: cluster, Epoch: epoch, Member: 3, Build: "1.1.0", SealBytes: 4000, BaseEvery: 60_000,
		Lock: a.performs.Lock}, ship.Begin(found), b.now)
	write(b, more)
	for _, h := range ends(b.catalog()) {
		if h.Index == b.index {
			f.ends[1] = h
		}
	}
	return f
}

// ends are the states with which segments end.
func ends(c *backup.Catalog) (all []backup.Head) {
	for i := range c.Segments {
		all = append(all, c.Segments[i].Head())
	}
	return all
}

// sole restores a target as a reader that knows nothing but the place, of the history with an end if one is given.
func (f *forked) sole(t *testing.T, target backup.Target, of *backup.Head) (string, error) {
	t.Helper()
	c := f.after.catalog()
	if of != nil {
		var err error
		if c, err = c.History(of.Point); err != nil {
			t.Fatal(err)
		}
	}
	s, err := replay.Run(t.Context(), replay.Options{Store: f.after.place, FS: files.Disk, Dir: t.TempDir() + "/scratch",
		OpenEngine: openMem, Open: f.after.reads, OneHistory: true}, c, target)
	if err != nil {
		return "", err
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	return contents(t, s.Machine), nil
}

// Ensure that of a place with two histories in one epoch no state is restored that is not of both, unless the history is named,
// and that each history comes back whole and by itself.
func TestRun_twoHistories(t *testing.T) {
	for _, row := range []struct {
		name   string
		locked bool
		more   int
	}{{"the later one is longer", false, 60}, {"the later one is shorter", false, 12}, {"encrypted", true, 60}} {
		f := fork(t, 1, row.locked, row.more, 0)
		var targets []backup.Target
		for _, m := range []*member{f.before, f.after} {
			for _, i := range []consensus.Index{f.at + 1, f.at + 9, m.index - 1, m.index} {
				targets = append(targets, backup.Target{Index: i}, backup.Target{Time: m.at[i].Time},
					backup.Target{Revision: m.at[i].Revision})
			}
		}
		for _, target := range append(targets, backup.Target{}) {
			if target.Revision != 0 && target.Revision <= f.before.at[f.at].Revision {
				continue // both have it
			}
			_, err := f.sole(t, target, nil)
			two, is := errors.AsType[*backup.HistoriesError](err)
			if !is {
				t.Fatalf("%s: %v: %v", row.name, target, err)
			}
			for _, end := range f.ends {
				if !slices.Contains(two.Ends, end) || !strings.Contains(err.Error(), "--history "+backup.PointName(end.Point)) {
					t.Errorf("%s: %v: %v does not name %v", row.name, target, err, end)
				}
			}
		}
		for i := f.at - 3; i <= f.at; i++ {
			if got, err := f.sole(t, backup.Target{Index: i}, nil); err != nil || got != f.before.was[i] {
				t.Errorf("%s: entry %d, before they part: %q, %v", row.name, i, got, err)
			}
		}
		for n, m := range []*member{f.before, f.after} {
			for i := f.at - 2; i <= m.index; i += 4 {
				if got, err := f.sole(t, backup.Target{Index: i}, &f.ends[n]); err != nil || got != m.was[i] {
					t.Fatalf("%s: history %d, entry %d of %d: %q, %v", row.name, n, i, f.at, got, err)
				}
			}
			if got, err := f.sole(t, backup.Target{}, &f.ends[n]); err != nil || got != m.was[m.index] {
				t.Errorf("%s: history %d, its last state: %q, %v", row.name, n, got, err)
			}
			last := m.last(backup.Target{Time: m.at[f.at+5].Time})
			if got, err := f.sole(t, backup.Target{Time: m.at[f.at+5].Time}, &f.ends[n]); err != nil || got != m.was[last] {
				t.Errorf("%s: history %d, a time: %q, %v", row.name, n, got, err)
			}
		}
		f.checkHistories(t, 2)
	}
}

func n(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (f *forked) checkHistories(t *testing.T, want int) {
	t.Helper()
	search := &history.Search{Store: f.after.place, Open: f.after.reads, Catalog: f.after.catalog()}
	all, err := search.Ends(t.Context())
	if err != nil || len(all) != want {
		t.Errorf("%d histories: %v, %v", want, all, err)
	}
}

// Ensure that a state of a history that a recovery lost is restored only by the name of the history, and that the one that went on
// needs no name.
func TestRun_lostHistory(t *testing.T) {
	f := fork(t, 2, false, 12, 1)
	named := 0
	for i := f.at + 1; i <= f.before.index; i += 3 {
		got, err := f.sole(t, backup.Target{Index: i}, nil)
		if i <= f.after.index {
			if err != nil || got != f.after.was[i] {
				t.Fatalf("entry %d: %q, %v", i, got, err)
			}
			continue
		}
		lost, ended := errors.AsType[*backup.EndedError](err)
		_, none := errors.AsType[*backup.UnreachableError](err) // the base is before the two part
		if named += n(ended); !none && (!ended || lost.End.Point != f.ends[0].Point || !strings.Contains(err.Error(), "of epoch 0")) {
			t.Fatalf("entry %d: %v", i, err)
		}
		if got, err := f.sole(t, backup.Target{Index: i}, &f.ends[0]); err != nil || got != f.before.was[i] {
			t.Fatalf("entry %d, named: %q, %v", i, got, err)
		}
	}
	if got, err := f.sole(t, backup.Target{}, nil); err != nil || got != f.after.was[f.after.index] {
		t.Errorf("the newest state: %q, %v", got, err)
	}
	if named == 0 {
		t.Error("no history was named")
	}
	revision := f.before.at[f.before.index].Revision
	if revision <= f.after.at[f.after.index].Revision {
		t.Fatal("the revision is none of the lost history")
	}
	if _, err := f.sole(t, backup.Target{Revision: revision}, nil); err == nil {
		t.Error("a revision of the lost history was restored")
	}
	f.checkHistories(t, 2)
}

// Ensure that two members that shipped one history at once, by segments that overlap, need no name, whichever objects are gone.
func TestRun_shippedAtOnce(t *testing.T) {
	for seed := range int64(2) {
		a, b := newMember(t, 10+seed, openMem), newMember(t, 20+seed, openMem)
		b.place, b.performs.Store = a.place, a.place
		b.now += 100
		for i := range 60 {
			c := a.command()
			a.apply(c)
			b.apply(c)
			if i == 20 {
				b.settle()
			}
		}
		a.settle()
		b.settle()
		f := &forked{before: a, after: b}
		for _, i := range []consensus.Index{25, 40, 59, 60} {
			if got, err := f.sole(t, backup.Target{Index: i}, nil); err != nil || got != a.was[i] {
				t.Fatalf("seed %d: entry %d: %q, %v", seed, i, got, err)
			}
		}
		f.checkHistories(t, 1)
		for n, s := range b.catalog().Segments {
			if n%4 == 2*int(seed) && s.End.Index < a.index {
				if err := a.place.Delete(t.Context(), s.String()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, err := f.sole(t, backup.Target{}, nil); err != nil || got != a.was[60] {
			t.Errorf("seed %d: with segments that are gone: %q, %v", seed, got, err)
		}
	}
}
