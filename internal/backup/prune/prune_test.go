package prune_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

const (
	cluster = 0xabcdef
	hour    = int64(3600_000)
	begun   = int64(1_790_000_000_000)
)

var config = prune.Config{Cluster: cluster, Member: 3, Rule: keep.Rule{Window: 12 * time.Hour, Daily: 2}}

// world is a place to which a member shipped: a base each 4 hours, a segment each hour, an entry in each.
type world struct {
	t     *testing.T
	now   int64
	place *objectstest.Place
	bases []backup.BaseName
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: begun}
	w.place = objectstest.NewPlace(1, func() time.Time { return time.UnixMilli(w.now) })
	return w
}

func (w *world) put(name string, content []byte) {
	w.t.Helper()
	if err := objects.PutOnce(w.t.Context(), w.place, name, strings.NewReader(string(content)), int64(len(content))); err != nil {
		w.t.Fatal(err)
	}
}

// state is that after an entry.
func state(index int) backup.Head {
	return backup.Head{Point: backup.Point{Index: consensus.Index(index), Sum: uint64(index) * 7},
		Moment: backup.Moment{Revision: kv.Revision(index), Time: begun + int64(index)*hour}}
}

// base puts a base with files, and one that only it has. Those that are absent it names without having put them.
func (w *world) base(index int, files ...string) backup.BaseName {
	h := state(index)
	m := backup.Manifest{Cluster: cluster, Member: 3, Index: h.Index, Term: 1, Revision: h.Revision, Sum: backup.Hex(h.Sum),
		Level: 1, Time: h.Time}
	for _, file := range append(files, fmt.Sprint("own-", index)) {
		content := []byte("content of " + file)
		if !strings.HasPrefix(file, "absent") {
			w.put(fileName(file), content)
		}
		m.Files = append(m.Files, backup.File{Name: file, Size: int64(len(content)), Hash: backup.HashOf(content)})
	}
	backup.SortFiles(m.Files)
	name, content := m.Encode()
	w.put(name.String(), content)
	w.bases = append(w.bases, name)
	return name
}

func fileName(file string) string {
	return backup.FileName(cluster, backup.HashOf([]byte("content of "+file)))
}

// ship ships the entries after from, up to to.
func (w *world) ship(from, to int) {
	for i := from + 1; i <= to; i++ {
		w.now = begun + int64(i)*hour
		h := state(i)
		n := backup.SegmentName{Cluster: cluster, First: h.Index, Before: state(i - 1).Sum, End: h.Point, Moment: h.Moment,
			Hash: backup.HashOf(fmt.Append(nil, i))}
		w.put(n.String(), fmt.Append(nil, i))
		if i%4 == 0 {
			w.base(i, "always", fmt.Sprint("shared-", i/8))
		}
	}
}

func (w *world) has(name string) bool {
	_, has := w.place.Bytes(name)
	return has
}

// round does a round on a store, and ends it after so many operations: the last one is done or not, and nobody learns.
func (w *world) round(c prune.Config, store objects.Store, most int, last bool) (r prune.Report, done int) {
	return w.roundOf(prune.New(c), store, most, last)
}

func (w *world) roundOf(p *prune.Pruner, store objects.Store, most int, last bool) (r prune.Report, done int) {
	p.Begin(w.now, w.bases[len(w.bases)-1].Index)
	for ops := p.Take(); len(ops) > 0; ops = p.Take() {
		for i := range ops {
			if done++; done == most && !last {
				return r, done
			}
			o := fetch.Prune(w.t.Context(), store, &ops[i])
			if done == most {
				return r, done
			}
			p.Done(ops[i].ID, o)
		}
	}
	if p.Active() {
		w.t.Fatal("a round asks for nothing, and has not ended")
	}
	return p.Report(), done
}

func (w *world) whole() (r prune.Report) {
	r, _ = w.round(config, w.place, 0, true)
	return r
}

// sound wants each base that is there to have its files, each moment of the window to be reached, and older bases by themselves.
func (w *world) sound(last int) {
	w.t.Helper()
	c, err := fetch.Catalog(w.t.Context(), w.place, cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range c.Bases {
		content, _ := w.place.Bytes(c.Bases[i].String())
		m, err := backup.OpenManifest(&c.Bases[i].BaseName, content, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range m.Files {
			if !w.has(backup.FileName(cluster, f.Hash)) {
				w.t.Fatalf("the base of entry %d lacks %s", m.Index, f.Name)
			}
		}
		if _, err := c.Plan(backup.Target{Index: m.Index}, func(backup.Hash) bool { return false }); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := last - 12; i <= last; i++ {
		if _, err := c.Plan(backup.Target{Time: state(i).Time}, func(backup.Hash) bool { return false }); err != nil {
			w.t.Fatalf("with entries to %d: %v", last, err)
		}
	}
}

// Ensure that a member that is killed at any operation, whether or not the place has done it, leaves a place from which all is
// restored that is to be, and that the next rounds remove what is left, and no more.
func TestPruner_eachOperation(t *testing.T) {
	const first, last = 88, 104
	build := func() *world {
		w := newWorld(t)
		w.base(0, "always")
		w.ship(0, first)
		for range 6 { // half of the bases go at a time
			w.whole()
		}
		w.ship(first, last)
		return w
	}
	settle := func(w *world) []string {
		for i := last; i < last+36; i += 4 {
			w.ship(i, i+4)
			w.whole()
			w.sound(i + 4)
		}
		return w.place.Names()
	}
	w := build()
	before := len(w.place.Names())
	report, operations := w.round(config, w.place, 0, true)
	if !report.Done || report.Why != "" || report.Removed < 20 || report.Bytes == 0 || report.Plan.Floor != last-16 {
		t.Fatalf("%+v, floor %d", report, report.Plan.Floor)
	}
	if after := len(w.place.Names()); before-after < report.Removed-1 || operations < 40 { // with a note, or without
		t.Fatalf("%d objects before, %d after, %d removed by %d operations", before, after, report.Removed, operations)
	}
	want := withoutNotes(settle(w))
	for most := 1; most <= operations; most++ {
		for _, done := range []bool{true, false} {
			w := build()
			w.round(config, w.place, most, done)
			w.sound(last)
			if got := withoutNotes(settle(w)); !slices.Equal(got, want) {
				t.Fatalf("killed at operation %d: %d objects, want %d", most, len(got), len(want))
			}
		}
	}
}

// withoutNotes drops the notes: they have times.
func withoutNotes(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, backup.KeptPrefix) })
}

// Ensure that a preview counts what a round removes, and removes nothing.
func TestPruner_dryRun(t *testing.T) {
	w := newWorld(t)
	w.base(0, "always")
	w.ship(0, 80)
	before := w.place.Names()
	c := config
	c.DryRun = true
	said, _ := w.round(c, w.place, 0, true)
	if !slices.Equal(before, w.place.Names()) {
		t.Fatal("a preview changes the place")
	}
	if does := w.whole(); said.Removed != does.Removed || said.Bytes != does.Bytes || said.Removed == 0 {
		t.Errorf("says %d, %d; does %d, %d", said.Removed, said.Bytes, does.Removed, does.Bytes)
	}
}

// Ensure that nothing goes by a rule that keeps all, and that nothing of another cluster goes ever.
func TestPruner_others(t *testing.T) {
	w := newWorld(t)
	other := "obj/0000000000000001/" + backup.HashOf(nil).String()
	strange := []string{other, "obj/x", "base/0000000000abcdef/x.json", "log/0000000000abcdef/x.ql", "own/notes"}
	for _, name := range strange {
		w.put(name, []byte("x"))
	}
	w.base(0, "always")
	w.ship(0, 100)
	before := w.place.Names()
	if r, _ := w.round(prune.Config{Cluster: cluster}, w.place, 0, true); !r.Done || r.Removed != 0 ||
		!slices.Equal(before, w.place.Names()) {
		t.Errorf("by no rule: %+v", r)
	}
	for range 5 {
		w.whole()
	}
	for _, name := range strange {
		if !w.has(name) {
			t.Errorf("%s is gone", name)
		}
	}
}

// Ensure that a file that no manifest names goes a day after it was put, and half an hour after the manifests that named it.
func TestPruner_graces(t *testing.T) {
	w := newWorld(t)
	w.put(fileName("orphan"), []byte("content of orphan"))
	w.base(0, "always")
	w.ship(0, 20)
	w.whole()
	if !w.has(fileName("orphan")) {
		t.Error("a file of 20 hours is gone")
	}
	w.ship(20, 60)
	r := w.whole()
	if w.has(fileName("orphan")) || !w.has(fileName("always")) {
		t.Error("after 60 hours it is there, or a file that is named is not")
	}
	gone := r.Plan.Fates[0].Index
	own := fileName(fmt.Sprint("own-", gone))
	if r.Plan.Fates[0].Kept || !w.has(own) {
		t.Fatalf("the base of entry %d stays, or its file went with it", gone)
	}
	w.now += hour / 4
	w.bases = append(w.bases, w.base(61, "always"))
	if w.whole(); !w.has(own) {
		t.Error("a file went a quarter of an hour after its manifest")
	}
	w.ship(61, 64)
	if w.whole(); w.has(own) {
		t.Error("a file stays, and nothing names it")
	}
}

// Ensure that while a manifest cannot be read no file goes, and what cannot be read itself stays; that this is told; and that a
// base that lacks files replaces no other.
func TestPruner_damaged(t *testing.T) {
	w := newWorld(t)
	w.put(fileName("orphan"), []byte("content of orphan"))
	first := w.base(0, "always")
	w.ship(0, 60)
	w.place.Flip(first.String(), 9)
	r := w.whole()
	if !r.Done || !strings.Contains(r.Why, first.String()) || !r.Refused || !w.has(first.String()) ||
		!w.has(fileName("orphan")) {
		t.Errorf("%+v", r)
	}
	if r.Removed == 0 {
		t.Error("no segment goes, either")
	}
	w.place.Remove(first.String())
	w.ship(60, 64)
	if r = w.whole(); r.Why != "" || w.has(fileName("orphan")) {
		t.Errorf("without it: %+v", r)
	}
	for i := 68; i <= 124; i += 4 { // bases that lack a file do not let others go
		w.now = begun + int64(i)*hour
		w.base(i, "absent")
		r = w.whole()
	}
	if !r.Lacks || !w.has(w.bases[len(w.bases)-16].String()) || !w.has(w.bases[len(w.bases)-17].String()) {
		t.Errorf("%+v", r)
	}
}

// omits is a place whose lists omit a name, or which has a manifest no more when it is read.
type omits struct {
	objects.Store
	listed, read string
}

func (o omits) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	found, more, err := o.Store.List(ctx, prefix, after, limit)
	return slices.DeleteFunc(found, func(i objects.Info) bool { return i.Name == o.listed }), more, err
}

func (o omits) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if name == o.read {
		return nil, objects.ErrNotFound
	}
	return o.Store.Get(ctx, name, offset, length)
}

// Ensure that a list without the newest base removes nothing, and that no file goes while the list and the place do not agree.
func TestPruner_late(t *testing.T) {
	w := newWorld(t)
	w.put(fileName("orphan"), []byte("content of orphan"))
	w.base(0, "always")
	w.ship(0, 60)
	before := w.place.Names()
	newest := w.bases[len(w.bases)-1].String()
	if r, _ := w.round(config, omits{w.place, newest, ""}, 0, true); r.Done || r.Refused || r.Why == "" ||
		!slices.Equal(before, w.place.Names()) {
		t.Errorf("without the newest base: %+v", r)
	}
	if r, _ := w.round(config, omits{w.place, "", w.bases[len(w.bases)-3].String()}, 0, true); !w.has(fileName("orphan")) ||
		r.Removed == 0 {
		t.Errorf("without a manifest: %+v", r)
	}
}

// Ensure that the files of a base stay that a list omits, once an earlier round has seen it.
func TestPruner_forgotten(t *testing.T) {
	w := newWorld(t)
	w.base(0, "always")
	w.ship(0, 100)
	p := prune.New(config)
	for range 5 {
		w.roundOf(p, w.place, 0, true)
		w.now += hour
	}
	c, err := fetch.Catalog(t.Context(), w.place, cluster)
	if err != nil {
		t.Fatal(err)
	}
	old := c.Bases[0] // the last of a day, more than a day old
	w.ship(100, 104)
	r, _ := w.roundOf(p, omits{w.place, old.String(), ""}, 0, true)
	if !r.Done || old.Index > 80 || !w.has(old.String()) || !w.has(fileName(fmt.Sprint("own-", old.Index))) {
		t.Errorf("the file of the base of entry %d: %+v", old.Index, r)
	}
}

// refuses is a place that lets nobody delete.
type refuses struct {
	objects.Store
	err error
}

func (r refuses) Delete(context.Context, string) error { return fmt.Errorf("delete: %w", r.err) }

// Ensure that a place that refuses is told from one that is busy, and that times that cannot be are believed by nobody.
func TestPruner_refusals(t *testing.T) {
	w := newWorld(t)
	w.base(0, "always")
	w.ship(0, 60)
	for err, refused := range map[error]bool{objects.ErrDenied: true, objects.ErrBusy: false, objects.ErrUnreachable: false} {
		if r, _ := w.round(config, refuses{w.place, err}, 0, true); r.Done || r.Refused != refused ||
			!strings.Contains(r.Why, err.Error()) {
			t.Errorf("%v: %+v", err, r)
		}
	}
	before := w.place.Names()
	w.now -= 2 * hour
	if r := w.whole(); r.Removed != 0 || !strings.Contains(r.Why, "the clock here says") {
		t.Errorf("a base of a later time: %+v", r)
	}
	w.base(68, "always") // 8 hours ahead of the place's clock
	w.now += 1000 * hour
	if r := w.whole(); r.Removed != 0 || !strings.Contains(r.Why, "by its own clock") {
		t.Errorf("a base that the place took before its time: %+v", r)
	}
	if missing := slices.DeleteFunc(before, w.has); len(missing) > 1 { // the notes are replaced
		t.Errorf("%v are gone", missing)
	}
}

// Ensure that a round with little memory removes nothing that it did not look at, and says so.
func TestPruner_bounds(t *testing.T) {
	w := newWorld(t)
	w.put(fileName("orphan"), []byte("content of orphan"))
	w.base(0, "always")
	w.ship(0, 60)
	c := config
	c.MostBytes = 128 * 10
	if r, _ := w.round(c, w.place, 0, true); r.Done || !r.Refused || !strings.Contains(r.Why, "more objects") {
		t.Errorf("with memory of ten files: %+v", r)
	}
	c.MostBytes = 20 << 10 // bases and files leave a quarter of it for a manifest
	w.base(61, strings.Repeat("x", 900), strings.Repeat("y", 900))
	w.now += 2 * hour
	r, _ := w.round(c, w.place, 0, true)
	if !r.Done || !strings.Contains(r.Why, w.bases[len(w.bases)-1].String()) || !w.has(fileName("orphan")) {
		t.Errorf("with a manifest that is too large: %+v", r)
	}
	w = newWorld(t)
	w.base(0, "always")
	c.MostBytes = 1 << 20
	small := []byte(`{"files":[` + strings.Repeat("{},", 40_000) + `{}]}`) // 64 bytes in memory of each 3
	name := backup.BaseName{Cluster: config.Cluster, Point: backup.Point{Index: 62}, Hash: backup.HashOf(small)}
	w.put(name.String(), small)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, _ = w.round(c, w.place, 0, true)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !strings.Contains(r.Why, name.String()) || took > 1<<20 {
		t.Errorf("with a manifest that becomes large: %+v, by %d bytes", r, took)
	}
}

// Ensure that a round that is stopped ends once what is under way has ended, and begins nothing more.
func TestPruner_Stop(t *testing.T) {
	w := newWorld(t)
	w.base(0, "always")
	w.ship(0, 60)
	p := prune.New(config)
	p.Begin(w.now, 0)
	ops := p.Take()
	p.Stop()
	if !p.Active() || len(ops) != 1 || len(p.Take()) != 0 {
		t.Fatal("ended before its operation")
	}
	p.Done(ops[0].ID, fetch.Prune(t.Context(), w.place, &ops[0]))
	if p.Active() || len(p.Take()) != 0 || p.Report().Done {
		t.Errorf("%+v", p.Report())
	}
	p.Begin(w.now, 0) // before anything of it was taken
	if p.Stop(); p.Active() {
		t.Error("it waits for what nobody does")
	}
}
