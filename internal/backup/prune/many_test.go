package prune_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/consensus"
)

// flood is a place that names other objects in each page of a list, and never ends.
type flood struct {
	name  func(n int) string
	pages int
}

// round runs a round, and returns how it ended and the most that was held at the end of a page.
func (f *flood) round(t *testing.T, p *prune.Pruner, pages, perPage int) (r prune.Report, held uint64) {
	t.Helper()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p.Begin(begun, 0)
	for ops := p.Take(); len(ops) > 0; ops = p.Take() {
		if len(ops) != 1 || ops[0].Kind != prune.List {
			t.Fatalf("got %+v", ops)
		}
		o := prune.Outcome{More: true}
		for range perPage {
			o.Listed = append(o.Listed, prune.Listed{Name: f.name(f.pages*perPage + len(o.Listed)), Time: begun})
		}
		if f.pages++; f.pages%pages == 0 {
			t.Fatalf("%d pages were read", pages)
		}
		p.Done(ops[0].ID, o)
		if perPage > 1 && f.pages%4 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			held = max(held, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		}
	}
	return p.Report(), held
}

func baseName(n int) string {
	b := backup.BaseName{Cluster: cluster, Point: backup.Point{Index: consensus.Index(n + 1), Sum: 1},
		Moment: backup.Moment{Revision: 1, Time: begun}}
	return b.String()
}

// Ensure that names of bases, which anybody may put who writes to the place, are held within the memory of a round, also those of
// rounds that failed before; that the round ends then, and says what to do; and that one ends at a list without end.
func TestPruner_floods(t *testing.T) {
	c := config
	c.MostBytes = 3 << 20
	p, f := prune.New(c), &flood{name: baseName}
	for round := range 6 {
		r, held := f.round(t, p, 1000, 1000)
		if r.Done || !r.Refused || !strings.Contains(r.Why, "more objects below base/") || !strings.Contains(r.Why, "--memory") ||
			strings.Contains(r.Why, "--keep") || r.Removed > 0 { // a shorter --keep removes history, once a round ends again
			t.Fatalf("round %d: %+v", round, r)
		}
		if held > uint64(c.MostBytes) {
			t.Errorf("round %d holds %d KiB, of %d", round, held>>10, c.MostBytes>>10)
		}
	}
	endless := &flood{name: func(n int) string { return fmt.Sprintf("base/%016x/%012d", cluster, n) }}
	if r, _ := endless.round(t, prune.New(c), 10*prune.MaxPages, 1); !r.Refused || !strings.Contains(r.Why, "more objects") {
		t.Errorf("a list without end: %+v", r)
	}
}

// Ensure that a round holds no more however many segments it removes.
func TestPruner_manyRemoved(t *testing.T) {
	w := newWorld(t)
	w.ship(0, 40)
	p, pages, removed := prune.New(config), 0, 0
	var first, now runtime.MemStats
	p.Begin(w.now, 40)
	for op, due := p.TakeOne(); due; op, due = p.TakeOne() {
		o := prune.Outcome{}
		switch n := (backup.SegmentName{Cluster: cluster, First: 1, End: backup.Point{Index: 1}}); {
		case op.Kind == prune.List && strings.HasPrefix(op.Name, backup.LogPrefix+"0000000000abcdef/0000000000000000") && pages < 100:
			for i := range 1000 {
				n.End.Sum = uint64(pages*1000 + i)
				o.Listed = append(o.Listed, prune.Listed{Name: n.String(), Size: 1, Time: begun})
			}
			if pages++; pages == 5 {
				runtime.GC()
				runtime.ReadMemStats(&first)
			}
			o.More = pages < 100
		case op.Kind == prune.Delete && strings.HasPrefix(op.Name, backup.LogPrefix):
			removed++
		default:
			o = fetch.Prune(t.Context(), w.place, &op)
		}
		if pages == 100 && now.NumGC == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
		}
		p.Done(op.ID, o)
	}
	if r := p.Report(); !r.Done || removed < 100_000 {
		t.Fatalf("%d removed, %+v", removed, r)
	}
	if now.HeapAlloc > first.HeapAlloc+512<<10 {
		t.Errorf("100,000 segments were removed, and %d KiB more are held", (now.HeapAlloc-first.HeapAlloc)>>10)
	}
}
