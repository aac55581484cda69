package ship_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
)

// ofLog reports whether an operation puts a segment, or the note of a gap.
func ofLog(op *ship.Op) bool {
	return op.Kind == ship.Put && (strings.HasPrefix(op.Name, backup.LogPrefix) || strings.HasPrefix(op.Name, backup.GapPrefix))
}

// judgeRoads wants no more operations at the place than it does at once, and one of them to be left to the log.
func (w *world) judgeRoads() {
	all, others, most := 0, 0, w.config.AtOnce
	if most == 0 {
		most = ship.DefaultAtOnce
	}
	for i := range w.running {
		if r := &w.running[i]; r.of == w.shipper && r.op.Kind != ship.Checkpoint {
			if all++; !ofLog(&r.op) {
				others++
			}
		}
	}
	if all > most || others > most-1 {
		w.t.Fatalf("%d operations are under way, %d of them not of the log, and the place does %d at once", all, others, most)
	}
}

// road is a shipper at a place that does two operations at once.
type road struct {
	t     *testing.T
	s     *ship.Shipper
	now   int64
	index consensus.Index
	under []ship.Op
}

// look takes what begins, and wants these operations to be under way.
func (r *road) look(what string, want ...string) {
	r.t.Helper()
	r.under = append(r.under, r.s.Take()...)
	var got []string
	for i := range r.under {
		name, _, _ := strings.Cut(r.under[i].Name, "/")
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("%s: %q are under way, want %q", what, got, want)
	}
}

// write applies an entry, which is sealed at once.
func (r *road) write() {
	r.index++
	r.now += 10
	r.s.Applied(r.now, batch(r.index, r.index))
	r.now += 10
	r.s.Tick(r.now)
}

// end ends the operation that began as the nth of those that are under way.
func (r *road) end(n int, o ship.Outcome) {
	op := r.under[n]
	r.under = slices.Delete(r.under, n, n+1)
	r.s.Done(op.ID, o)
}

// Ensure that a segment is put at once while files of a base take long, whose next one begins when another one has ended, also
// while there are always more segments to put.
func TestShipper_roads(t *testing.T) {
	r := &road{t: t, now: 1_790_000_000_000, index: 90}
	r.s = ship.New(ship.Config{Cluster: cluster, Member: 3, SealAfter: 1, BaseEvery: 3600_000, AtOnce: 2},
		ship.Start{Applied: 90}, r.now)
	checkpoint := func(of int) {
		t.Helper()
		made := &backup.Manifest{Index: r.index, Level: 1, Sum: backup.Hex(r.index), Revision: 1}
		for i := range 3 {
			name := fmt.Sprint(of, i)
			made.Files = append(made.Files, backup.File{Name: name, Hash: backup.HashOf([]byte(name))})
		}
		at := slices.IndexFunc(r.under, func(op ship.Op) bool { return op.Kind == ship.Checkpoint })
		r.end(at, ship.Outcome{Made: made})
	}
	for range 4 {
		r.write()
	}
	r.look("no base is put", "", "log", "log")
	checkpoint(1)
	r.look("all is taken", "log", "log")
	r.end(0, ship.Outcome{})
	r.look("the base comes before another segment", "log", "obj")
	for range 5 {
		r.end(0, ship.Outcome{})
		r.look("segments go on", "obj", "log")
		r.under[0], r.under[1] = r.under[1], r.under[0]
		r.write()
	}
	r.end(1, ship.Outcome{})
	r.look("the next file", "log", "obj")
	for r.under[0].Kind == ship.Put {
		r.end(0, ship.Outcome{})
		r.under = append(r.under, r.s.Take()...)
		r.under[0], r.under[len(r.under)-1] = r.under[len(r.under)-1], r.under[0]
	}
	r.look("no segment waits, and its road is left free", "obj")
	r.write()
	r.look("a segment", "obj", "log")
}

// Ensure that a base does not wait until retention has removed all that is to go, where the place does two operations at once.
func TestShipper_baseBesideRetention(t *testing.T) {
	w := &world{t: t, rng: rand.New(rand.NewSource(1)), place: map[string][]byte{}, times: map[string]int64{}, hours: 3000,
		now: 1_790_000_000_000, calm: true, config: ship.Config{Cluster: cluster, Member: 3, SealBytes: 500, SealAfter: 900_000,
			BaseEvery: 6_000_000, HeldBytes: 20_000, AtOnce: 2, Keep: keep.Rule{Window: 4 * time.Hour}}}
	w.start()
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
	w.shipper.Permit(false)
	run(600, func() bool { return false })
	w.shipper.Permit(true)
	if !run(400, func() bool { return w.deleted > 10 }) {
		t.Fatal("nothing is removed")
	}
	w.now += w.config.BaseEvery
	w.write(1)
	w.give(1)
	begun := -1
	for range 2000 {
		w.tick(1)
		w.look()
		for i := range w.running {
			switch op := &w.running[i].op; {
			case op.Kind == ship.Checkpoint:
				begun = w.deleted
			case op.Kind == ship.PutFile && begun < 0:
				t.Fatal("a file of no base")
			case op.Kind == ship.PutFile && w.deleted > begun+3:
				t.Fatalf("a file of the base waits for %d objects to be removed", w.deleted-begun)
			case op.Kind == ship.PutFile:
				deleted := w.deleted
				if run(20, func() bool { return w.deleted > deleted+20 }); w.deleted < deleted+20 {
					t.Fatal("little was left to remove")
				}
				return
			}
		}
		w.finish()
	}
	t.Fatal("no base was begun")
}
