package ship_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
)

// prune performs an operation of retention.
func (w *world) prune(op *prune.Op) prune.Outcome {
	o := prune.Outcome{}
	switch op.Kind {
	case prune.List:
		for _, name := range slices.Sorted(maps.Keys(w.place)) {
			if !strings.HasPrefix(name, op.Name) || name <= op.After || w.late && w.rng.Intn(20) == 0 {
				continue
			}
			if o.More = len(o.Listed) == 7; o.More {
				break
			}
			o.Listed = append(o.Listed, prune.Listed{Name: name, Size: int64(len(w.place[name])), Time: w.times[name]})
		}
	case prune.Get:
		content, there := w.place[op.Name]
		switch {
		case !there:
			o.Absent = true
		case backup.HashOf(content) != op.Hash || int64(len(content)) > op.Most:
			o.Damaged = true
		default:
			o.Content = content
		}
	case prune.Put:
		w.place[op.Name], w.times[op.Name] = op.Content, w.now
	case prune.Delete:
		delete(w.place, op.Name)
		w.deleted++
	}
	return o
}

// since is from when on any moment is to be restorable: the rule's window before the newest base that has all its files.
func (w *world) since() int64 {
	newest := int64(0)
	for i := range w.catalog().Bases {
		b := &w.catalog().Bases[i]
		if m, err := backup.ObjectsOf(&b.BaseName, w.place[b.String()]); err == nil && w.has(m) {
			newest = max(newest, b.Time)
		}
	}
	return newest - w.config.Keep.Window.Milliseconds()
}

func (w *world) has(needed []backup.Object) bool {
	return !slices.ContainsFunc(needed, func(f backup.Object) bool {
		return backup.HashOf(w.place[backup.FileName(cluster, f.Hash)]) != f.Hash
	})
}

// kept wants each moment of the window that was called restorable to be restored, and each base by itself. A base may lack
// files only if members shipped at the same time.
func (w *world) kept() {
	w.t.Helper()
	since := w.since()
	for _, h := range w.good {
		if h.Time >= since {
			w.restores(h)
		}
	}
	for _, b := range w.catalog().Bases {
		m, err := backup.ObjectsOf(&b.BaseName, w.place[b.String()])
		switch {
		case err != nil:
		case w.has(m) && b.Index == 0: // a target of entry 0 is the latest state
		case w.has(m):
			w.restores(b.Head())
		case !w.ghosts:
			w.t.Fatalf("the base of entry %d lacks files", b.Index)
		}
	}
}

// Whatever a place does, and whatever befalls the member while it removes what the rule does not keep (it stops anywhere,
// another one goes on while operations of the former one still end, lists are late): each moment of the window is restored, and
// once all is calm, what is not needed is gone, and the newest base has all its files.
func TestShipper_retention(t *testing.T) {
	seeds := int64(60)
	if testing.Short() {
		seeds = 15
	}
	deleted := 0
	for seed := range seeds {
		deleted += keeps(t, seed)
	}
	if deleted < 1000 {
		t.Errorf("%d objects were removed: the walk shows nothing", deleted)
	}
}

func keeps(t *testing.T, seed int64) (deleted int) {
	t.Helper()
	rng := rand.New(rand.NewSource(seed))
	const faster = 3000
	w := &world{t: t, rng: rng, place: map[string][]byte{}, times: map[string]int64{}, hours: faster, now: 1_790_000_000_000,
		config: ship.Config{Cluster: cluster, Member: 3, SealBytes: 1 + rng.Intn(2000), SealAfter: 300 * faster,
			BaseEvery: 2000 * faster, HeldBytes: int64(1000 + rng.Intn(20000)), AtOnce: ship.LeastAtOnce + int(seed%3),
			Keep: keep.Rule{Window: 4 * time.Hour}}}
	if rng.Intn(2) == 0 {
		w.config.Keep.Daily = 2
	}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	w.restarts, w.late = seed%3 > 0, seed%3 == 2
	w.ghosts = w.late
	if seed%4 == 3 {
		w.relock() // encrypted, and with other recipients after some restarts
	}
	w.write(rng.Intn(20))
	w.start()
	for i := range 1500 {
		w.step()
		if i%150 == 149 {
			w.kept()
		}
	}
	w.calm, w.late = true, false
	for name, content := range w.place { // an operator does as he is told
		if strings.HasPrefix(name, backup.BasePrefix) && !w.whole(name, content) {
			delete(w.place, name)
		}
	}
	delete(w.place, backup.FileName(cluster, w.fileNamed("always").Hash)) // somebody does
	for range 400 {
		w.write(1)
		w.give(1000)
		w.tick(200)
		w.look()
		for range 20 {
			w.finish()
			w.look()
		}
	}
	w.kept()
	w.gone()
	return w.deleted
}

// gone wants nothing that the rule does not keep, but for what is younger than a grace.
func (w *world) gone() {
	w.t.Helper()
	p := w.shipper.Progress().Retention
	if p.At == 0 || p.Why != "" || w.now-p.At > 4*3600_000 {
		w.t.Fatalf("at %d: %+v", w.now, p)
	}
	named := map[string]bool{}
	c := w.catalog()
	for i := range c.Bases {
		m, err := backup.ObjectsOf(&c.Bases[i].BaseName, w.place[c.Bases[i].String()])
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range m {
			named[backup.FileName(cluster, f.Hash)] = true
		}
	}
	for name := range w.place {
		if strings.HasPrefix(name, backup.FilePrefix) && !named[name] && w.now-w.times[name] > 30*3600_000 {
			w.t.Fatalf("%s is %v old, and no manifest names it", name, time.Duration(w.now-w.times[name])*time.Millisecond)
		}
	}
	for _, s := range c.Segments {
		if s.End.Index <= p.Floor {
			w.t.Fatalf("segment %d to %d is not needed, from %d on", s.First, s.End.Index, p.Floor)
		}
	}
	newest := c.Bases[len(c.Bases)-1]
	if m, err := backup.ObjectsOf(&newest.BaseName, w.place[newest.String()]); err != nil || !w.has(m) {
		w.t.Fatalf("the newest base lacks files: %v", err)
	}
	if w.now-newest.Time > 3*w.config.BaseEvery || len(c.Bases) > 12 {
		w.t.Fatal(fmt.Sprint(len(c.Bases), " bases, the newest ", newest.Time, " at ", w.now))
	}
}

// driven is a shipper whose operations a test ends one by one.
type driven struct {
	t   *testing.T
	now int64
	s   *ship.Shipper
	ops map[ship.Kind][]ship.Op // that began last
}

func drive(t *testing.T, baseEvery int64) *driven {
	d := &driven{t: t, now: 1_790_000_000_000}
	d.s = ship.New(ship.Config{Cluster: cluster, Member: 3, SealAfter: 1, BaseEvery: baseEvery,
		Keep: keep.Rule{Window: time.Hour}}, ship.Start{Applied: 5}, d.now)
	return d
}

func (d *driven) tick(ms int64) {
	d.ops = map[ship.Kind][]ship.Op{}
	d.now += ms
	d.s.Tick(d.now)
	for _, op := range d.s.Take() {
		d.ops[op.Kind] = append(d.ops[op.Kind], op)
	}
}

func (d *driven) want(what string, kinds ...ship.Kind) {
	d.t.Helper()
	if got := slices.Sorted(maps.Keys(d.ops)); !slices.Equal(got, kinds) {
		d.t.Fatalf("%s: got %v, want %v", what, got, kinds)
	}
}

// base makes the first base, and leaves a round that has begun after it.
func (d *driven) base() {
	d.t.Helper()
	d.tick(0)
	d.want("at first", ship.Checkpoint)
	checkpoint := d.ops[ship.Checkpoint][0]
	d.tick(3600_000)
	d.want("while the checkpoint is made")
	d.s.Done(checkpoint.ID, ship.Outcome{Made: &backup.Manifest{Index: 5, Level: 1,
		Files: []backup.File{{Name: "1", Hash: backup.HashOf(nil)}}}})
	d.tick(0)
	d.want("with the checkpoint", ship.PutFile)
	d.s.Done(d.ops[ship.PutFile][0].ID, ship.Outcome{})
	d.tick(0)
	d.want("with the files", ship.Put)
	d.s.Done(d.ops[ship.Put][0].ID, ship.Outcome{})
	d.tick(0)
	d.want("with the base", ship.Discard, ship.Prune)
}

// Ensure that a base waits for a round that looks at files, for ten minutes at most.
func TestShipper_baseOrRetention(t *testing.T) {
	d := drive(t, 300_000)
	d.base()
	look := d.ops[ship.Prune][0]
	d.s.Applied(d.now, &ship.Batch{Items: []backup.Item{{Entry: consensus.Entry{Index: 6}}}})
	d.tick(1)
	d.want("a segment", ship.Put)
	d.tick(301_000)
	d.want("a base is due")
	d.tick(300_000)
	d.want("a base is late")
	d.s.Done(look.ID, ship.Outcome{Pruned: prune.Outcome{}})
	d.tick(0)
	d.want("the round has ended", ship.Checkpoint)
}

// Ensure that no round begins while a base is made that is due by a gap and not by the time.
func TestShipper_retentionAfterGap(t *testing.T) {
	d := drive(t, 36_000_000)
	d.base()
	d.s.Done(d.ops[ship.Prune][0].ID, ship.Outcome{Pruned: prune.Outcome{}}) // it does not list the base: tried again later
	d.s.Replaced(d.now, 9)
	d.tick(0)
	d.want("a gap", ship.Put)
	d.s.Done(d.ops[ship.Put][0].ID, ship.Outcome{})
	d.tick(0)
	d.want("a base after it", ship.Checkpoint)
	d.tick(700_000)
	d.want("while it is made")
}

// Ensure that retention asks for nothing from the moment on at which the caller does not know any more whether this member ships,
// also in the middle of a round, and goes on when that is known again.
func TestShipper_Permit(t *testing.T) {
	w := &world{t: t, rng: rand.New(rand.NewSource(1)), place: map[string][]byte{}, times: map[string]int64{}, hours: 3000,
		now: 1_790_000_000_000, calm: true, config: ship.Config{Cluster: cluster, Member: 3, SealBytes: 500, SealAfter: 900_000,
			BaseEvery: 6_000_000, HeldBytes: 20_000, Keep: keep.Rule{Window: 4 * time.Hour}}}
	w.start()
	asked := func() (asked, deletes int) {
		for i := range w.running {
			if op := w.running[i].op.Prune; op != nil {
				asked++
				if op.Kind == prune.Delete {
					deletes++
				}
			}
		}
		return asked, deletes
	}
	run := func(ticks int, until func() bool) bool {
		for range ticks {
			w.write(1)
			w.give(1000)
			w.tick(200)
			w.look()
			for range 20 {
				if until() {
					return true
				}
				w.finish()
				w.look()
			}
		}
		return false
	}
	deletes := func() bool { _, deletes := asked(); return deletes > 0 && w.deleted > 20 }
	for _, moment := range []struct {
		name string
		is   func() bool
	}{{"in a page of deletes", deletes}, {"in a look", func() bool { a, d := asked(); return a > 0 && d == 0 }}} {
		if !run(400, moment.is) {
			t.Fatalf("%s: there was none", moment.name)
		}
		w.shipper.Permit(false)
		under, _ := asked()
		deleted, bases := w.deleted, len(w.catalog().Bases)
		run(200, func() bool {
			if n, _ := asked(); n > under {
				t.Fatalf("%s: %d operations of retention are under way, and there were %d", moment.name, n, under)
			} else {
				under = n
			}
			return false
		})
		if w.deleted > deleted+4 || under > 0 {
			t.Errorf("%s: %d objects were removed", moment.name, w.deleted-deleted)
		}
		if made := len(w.catalog().Bases) - bases; made < 5 {
			t.Errorf("%s: %d bases were made meanwhile", moment.name, made)
		}
		w.shipper.Permit(true)
		deleted = w.deleted
		if !run(100, func() bool { return w.deleted > deleted+10 }) {
			t.Errorf("%s: nothing is removed afterwards: %+v", moment.name, w.shipper.Progress().Retention)
		}
	}
}
