package survey_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/attempt"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/backup/survey"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// world is a place with a backup that a row knows, whose first base was proven.
type world struct {
	t     *testing.T
	place *objectstest.Place
	heads []backup.Head
	row   kv.BackupRow  // when the look begins
	now   *kv.BackupRow // at its end
	o     survey.Options
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, place: objectstest.NewPlace(1, time.Now)}
	var commands []kv.Command
	for i := range 40 {
		put := &kv.PutOp{Key: fmt.Append(nil, "k", i%9), Value: bytes.Repeat([]byte{byte(i)}, 40)}
		commands = append(commands, kv.Command{Put: put})
	}
	w.heads = backuptest.Ship(t, w.place, commands)
	for _, b := range w.catalog().Bases {
		w.row.Known = append(w.row.Known, kv.BackupBase{Index: uint64(b.Index), Hash: b.Hash})
	}
	last := w.heads[len(w.heads)-1]
	w.row.Progress.Restorable, w.row.Progress.Sum = kv.BackupPoint{Index: uint64(last.Index)}, last.Sum
	w.row.Proofs.Proven.Base = w.row.Known[0].Hash
	w.now = &w.row
	w.o = survey.Options{Store: w.place, Cluster: backuptest.Cluster, Op: &attempt.Op{Row: &w.row}, Part: w.part,
		Row: func() *kv.BackupRow { return w.now }}
	return w
}

func (w *world) part(
	ctx context.Context, run func(context.Context, prove.Options) (*prove.Proof, error),
) (*prove.Proof, error) {
	return run(ctx, prove.Options{FS: files.Disk, Dir: w.t.TempDir() + "/scratch", OpenEngine: func(dir string) (engine.Engine, error) {
		return engine.Open(engine.Options{FS: files.Disk, Dir: dir})
	}})
}

func (w *world) catalog() *backup.Catalog {
	w.t.Helper()
	c, err := fetch.Catalog(w.t.Context(), w.place, backuptest.Cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) put(name, content string) {
	w.t.Helper()
	if err := w.place.Put(w.t.Context(), name, strings.NewReader(content), int64(len(content))); err != nil {
		w.t.Fatal(err)
	}
}

// look takes all steps, and calls then after the first one.
func (w *world) look(then func()) (*prove.Proof, error) {
	s := survey.New(w.o)
	for step := 0; s.Step(w.t.Context()); step++ {
		if step == 0 {
			then()
		}
	}
	return s.Result()
}

// prune removes what retention removes that keeps the log from a base on, and notes it.
func (w *world) prune(c *backup.Catalog, from *backup.Base) {
	w.t.Helper()
	note := backup.Kept{Cluster: backup.Hex(backuptest.Cluster), Floor: from.Index, Rule: "1h"}
	name, content := note.Encode()
	w.put(name.String(), string(content))
	for i := range c.Bases {
		if c.Bases[i].Index < from.Index {
			w.place.Remove(c.Bases[i].String())
		}
	}
	for i := range c.Segments {
		if c.Segments[i].End.Index <= from.Index {
			w.place.Remove(c.Segments[i].String())
		}
	}
}

// Ensure that nothing is called damaged which retention removed while it was read, and that what is missing otherwise is.
func TestSurvey_prunedMeanwhile(t *testing.T) {
	w := newWorld(t)
	c := w.catalog()
	n := len(c.Bases)
	p, err := w.look(func() { w.prune(c, &c.Bases[n-2]) })
	if err != nil || len(p.Damaged) > 0 || p.At != w.heads[len(w.heads)-1] {
		t.Errorf("got %+v, %v", p, err)
	}
	gone := c.Bases[n-2].String()
	p, err = w.look(func() { w.place.Remove(gone) })
	if err != nil || len(p.Damaged) != 1 || !strings.Contains(p.Damaged[0].Error(), gone) {
		t.Errorf("a base that is to be kept is gone: got %+v, %v", p, err)
	}

	// All that was there when the look began is gone.
	w = newWorld(t)
	c = w.catalog()
	later := backup.Base{BaseName: backup.BaseName{Point: backup.Point{Index: w.heads[len(w.heads)-1].Index + 100}}}
	p, err = w.look(func() {
		w.prune(c, &later)
		now := w.row
		for i := range 2 { // what is there now
			base := backup.BaseName{Cluster: backuptest.Cluster, Point: backup.Point{Index: later.Index + consensus.Index(i)},
				Hash: backup.Hash{byte(i + 1)}}
			w.put(base.String(), "")
			now.Known = append(slices.Clone(now.Known), kv.BackupBase{Index: uint64(base.Index), Hash: base.Hash})
		}
		now.Progress.Restorable.Index = uint64(later.Index) + 1
		w.now = &now
	})
	if err == nil || prove.Verdict(err) || !strings.Contains(err.Error(), "retention removed what was read") {
		t.Errorf("nothing is left of what was listed: got %+v, %v", p, err)
	}
}

// Ensure that a note of retention which somebody else put explains no hole behind the last but one base: that log stays.
func TestSurvey_forgedNote(t *testing.T) {
	w := newWorld(t)
	c := w.catalog()
	n := len(c.Bases)
	note := backup.Kept{Cluster: backup.Hex(backuptest.Cluster), Floor: w.heads[len(w.heads)-1].Index, Rule: "1h"}
	name, content := note.Encode()
	w.put(name.String(), string(content))
	for _, s := range c.Segments {
		if s.End.Index == c.Bases[n-1].Index-3 {
			w.place.Remove(s.String())
		}
	}
	p, err := w.look(func() {})
	if err != nil || len(p.Damaged) != 1 || p.Base == c.Bases[n-1] {
		t.Errorf("got %+v, %v", p, err)
	}
	w.place.Remove(c.Bases[n-1].String())
	if p, err := w.look(func() {}); err == nil || !prove.Verdict(err) {
		t.Errorf("nothing leads to the end: got %+v, %v", p, err)
	}
}

// Ensure that a file of a base which retention has removed is no damage, and one of another base is.
func TestSurvey_prunedFile(t *testing.T) {
	w := newWorld(t)
	c := w.catalog()
	n := len(c.Bases)
	file := func(b *backup.Base) string {
		content, _ := w.place.Bytes(b.String())
		m, err := backup.OpenManifest(&b.BaseName, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Files {
			if strings.HasPrefix(f.Name, "MANIFEST") { // each store has its own
				return backup.FileName(backuptest.Cluster, f.Hash)
			}
		}
		t.Fatalf("%+v", m.Files)
		return ""
	}
	first, second := file(&c.Bases[0]), file(&c.Bases[n-2])
	for name, row := range map[string]struct {
		file    string
		damaged int
	}{"of one that is gone": {first, 0}, "of one that stays": {second, 1}} {
		content, _ := w.place.Bytes(row.file)
		p, err := w.look(func() {
			w.place.Remove(row.file)
			note := backup.Kept{Cluster: backup.Hex(backuptest.Cluster), Floor: c.Bases[n-2].Index, Rule: "1h"}
			kept, content := note.Encode()
			w.place.Remove(kept.String())
			w.put(kept.String(), string(content))
		})
		if err != nil || len(p.Damaged) != row.damaged {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
		w.put(row.file, string(content))
	}
}

// Ensure that an object which is larger than there is memory for stops no proof, whatever its name says that it leads to; and
// that where it is needed the proof says so, and is no verdict.
func TestSurvey_large(t *testing.T) {
	w := newWorld(t)
	w.o.ObjectBytes = 1 << 20
	c := w.catalog()
	last := c.Segments[len(c.Segments)-1]
	large := strings.Repeat("x", 1<<20+1)
	forged := backup.SegmentName{Cluster: backuptest.Cluster, First: last.First - 1, Before: 1, End: last.End, Moment: last.Moment,
		Hash: backup.HashOf([]byte(large))}
	w.put(forged.String(), large)
	if p, err := w.look(func() {}); err != nil || len(p.Damaged) > 0 || p.At != w.heads[len(w.heads)-1] || p.Bases != len(c.Bases)-1 {
		t.Errorf("got %+v, %v", p, err)
	}
	w.place.Remove(last.String())
	for _, b := range c.Bases {
		if b.Index == last.End.Index {
			w.place.Remove(b.String())
		}
	}
	if p, err := w.look(func() {}); err == nil || prove.Verdict(err) || !strings.Contains(err.Error(), "raise its --memory") {
		t.Errorf("nothing else leads there: got %+v, %v", p, err)
	}
}

// Ensure that a base with other contents is found which a member made since the last proof, of the entry of the base that was
// proven, or of an earlier one, as a member makes it that is behind.
func TestSurvey_madeSince(t *testing.T) {
	for name, earlier := range map[string]int{"of the same entry": 0, "of an earlier one": 1} {
		w := newWorld(t)
		c := w.catalog()
		last := len(c.Bases) - 1
		base := &c.Bases[last-earlier]
		content, _ := w.place.Bytes(base.String())
		made, err := backup.ParseBase(backuptest.Spoil(t, w.place, c, base, func(dir string) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: files.Disk, Dir: dir})
		}))
		if err != nil {
			t.Fatal(err)
		}
		w.row.Proofs.Proven.Base = c.Bases[last].Hash
		if earlier == 0 {
			w.put(base.String(), string(content))
		} else {
			w.row.Known = slices.Delete(w.row.Known, last-earlier, last-earlier+1)
		}
		w.row.Known = append(w.row.Known, kv.BackupBase{Index: uint64(made.Index), Hash: made.Hash})
		p, err := w.look(func() {})
		if !errors.Is(err, prove.ErrContents) || !strings.Contains(err.Error(), made.String()) {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
}

// Ensure that a hole in the log which the note of a gap explains is silent only if members reported that gap, however many others
// they reported: somebody who may delete may have removed the log, and put the note.
func TestSurvey_forgedGap(t *testing.T) {
	w := newWorld(t)
	c := w.catalog()
	n := len(c.Bases)
	var hole backup.Stored
	for _, s := range c.Segments {
		if s.End.Index == c.Bases[n-1].Index-3 {
			hole = s
		}
	}
	w.place.Remove(hole.String())
	note := backup.Gap{Cluster: backup.Hex(backuptest.Cluster), After: hole.First - 1, Until: hole.End.Index + 1, Time: backuptest.Begun}
	name, content := note.Encode()
	w.put(name.String(), string(content))
	before := kv.BackupGap{After: 1, Until: 3, Time: backuptest.Begun}
	same := kv.BackupGap{After: uint64(note.After), Until: uint64(note.Until), Time: note.Time}
	w.row.Progress.Gaps = 2
	for _, row := range []struct {
		reported []kv.BackupGap
		holes    int
	}{{nil, 1}, {[]kv.BackupGap{before, before}, 1}, {[]kv.BackupGap{same, before}, 0}} {
		w.row.KnownGaps = row.reported
		p, err := w.look(func() {})
		if err != nil || len(p.Damaged) > 0 || p.Holes != row.holes || p.Base != c.Bases[n-1] {
			t.Errorf("%v were reported: got %+v, %v", row.reported, p, err)
		}
	}
}

// Ensure that notes of gaps which somebody made up, however many, hide neither log that is gone nor that the end is.
func TestSurvey_manyNotes(t *testing.T) {
	w := newWorld(t)
	c := w.catalog()
	n := len(c.Bases)
	for i := range 1100 {
		g := backup.GapName{Cluster: backuptest.Cluster, After: 1, Until: 2, Time: int64(i)}
		w.put(g.String(), "")
	}
	for _, s := range c.Segments {
		if s.End.Index == c.Bases[n-1].Index-3 {
			w.place.Remove(s.String())
		}
	}
	for range 2 {
		p, err := w.look(func() {})
		if lost := (*prove.LostError)(nil); err != nil || len(p.Damaged) != 1 || !errors.As(p.Damaged[0], &lost) || p.Left > 0 {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	w.place.Remove(c.Bases[n-1].String())
	if p, err := w.look(func() {}); err == nil || !prove.Verdict(err) {
		t.Errorf("nothing leads to the end: got %+v, %v", p, err)
	}
}
