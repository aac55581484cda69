package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

func TestReclaimer_due(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		name                  string
		dropped, left, onDisk int64
		low, unknown, want    bool
	}{
		{name: "nothing was dropped", left: 2 * mib, onDisk: 900 * mib},
		{name: "much was, and lies on disk", dropped: 200 * mib, left: 2 * mib, onDisk: 202 * mib, want: true},
		{name: "the engine has removed it by itself", dropped: 200 * mib, left: 2 * mib, onDisk: 10 * mib},
		{name: "little beside what is left", dropped: 200 * mib, left: 900 * mib, onDisk: 1100 * mib},
		{name: "half of what is left", dropped: 450 * mib, left: 900 * mib, onDisk: 1351 * mib, want: true},
		{name: "little", dropped: 15 * mib, left: 2 * mib, onDisk: 40 * mib},
		{name: "little, on a full disk", dropped: 15 * mib, left: 900 * mib, onDisk: 915 * mib, low: true, want: true},
		{name: "nothing, on a full disk", left: 2 * mib, onDisk: 40 * mib, low: true},
		{name: "before this process", left: 2 * mib, onDisk: 40 * mib, unknown: true, want: true},
		{name: "little before this process", left: 900 * mib, onDisk: 950 * mib, unknown: true},
		{name: "before this process, on a full disk", left: 900 * mib, onDisk: 950 * mib, unknown: true, low: true, want: true},
		{name: "nothing before this process, on a full disk", left: 900 * mib, onDisk: 900 * mib, unknown: true, low: true},
	} {
		r := &Reclaimer{pace: DefaultReclaimPace, unknown: tc.unknown}
		if got := r.due(tc.dropped, tc.left, tc.low, func() int64 { return tc.onDisk }); got != tc.want {
			t.Errorf("%s: due is %v, want %v", tc.name, got, tc.want)
		}
	}
}

// heldDisk is an engine that says how much of the disk it has, and notes that it is rewritten.
type heldDisk struct {
	engine.Engine
	bytes     uint64
	fails     error
	reclaimed []bool // whether in a hurry
}

func (h *heldDisk) Stats() engine.Stats { return engine.Stats{DiskBytes: h.bytes} }

func (h *heldDisk) Reclaim(_ context.Context, hurry bool) error {
	h.reclaimed = append(h.reclaimed, hurry)
	return h.fails
}

// reclaiming is a store whose history can be compacted.
type reclaiming struct {
	t       *testing.T
	disk    *heldDisk
	options datadir.Options
	data    *datadir.Data
	stores  datadir.Stores
	index   consensus.Index
}

func newReclaiming(t *testing.T) *reclaiming {
	t.Helper()
	g := &reclaiming{t: t, disk: &heldDisk{}}
	fs := filestest.NewMem()
	g.options = datadir.Options{FS: fs, Dir: "d", Logger: slog.New(slog.DiscardHandler),
		OpenEngine: func(dir string) (opened engine.Engine, err error) {
			if opened, err = engine.OpenMem(engine.MemOptions{FS: fs, Dir: dir}); err == nil {
				g.disk.Engine, opened = opened, g.disk
			}
			return opened, err
		}}
	own := wal.Identity{Cluster: 77, Member: 1, Storage: wal.StorageID{1}}
	first := consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1}}}
	if err := datadir.Create(g.options, own, first); err != nil {
		t.Fatal(err)
	}
	g.open()
	return g
}

// open is what a start does.
func (g *reclaiming) open() {
	g.t.Helper()
	data, err := datadir.Open(g.options)
	if err != nil {
		g.t.Fatal(err)
	}
	g.data = data
	g.index = data.Machine.Applied().Index
	g.stores.Set(data.Generation)
}

// restart stops the member, and starts it.
func (g *reclaiming) restart() {
	g.t.Helper()
	if err := g.data.Close(); err != nil {
		g.t.Fatal(err)
	}
	g.open()
}

// garbage leaves bytes of versions that a compaction has deleted.
func (g *reclaiming) garbage(bytes int) {
	g.t.Helper()
	machine, release := g.stores.Machine()
	defer release()
	do := func(c kv.Command) {
		g.index++
		if _, err := machine.Apply([]consensus.Entry{{Index: g.index, Term: 1, Kind: consensus.EntryCommand,
			Payload: c.Append(nil)}}); err != nil {
			g.t.Fatal(err)
		}
	}
	for _, size := range []int{bytes, 1} {
		do(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: make([]byte, size)}})
	}
	do(kv.Command{Compact: &kv.CompactOp{Revision: machine.Store().Revision()}})
	for done := false; !done; {
		var err error
		if done, err = machine.Store().CompactStep(1000); err != nil {
			g.t.Fatal(err)
		}
	}
}

// Ensure that a store is rewritten once for what compactions dropped, again only for more, and after a failure not at once; that a
// nearly full disk is in a hurry; and that a new process finds what the one before left.
func TestReclaimer_Step(t *testing.T) {
	g := newReclaiming(t)
	low := false
	pace := ReclaimPace{Bytes: 10_000, LowBytes: 1000, Retry: time.Minute}
	r := NewReclaimer(&g.stores, func() bool { return low }, pace, slog.New(slog.DiscardHandler))
	now := time.Unix(1000, 0)
	step := func(want int, when string) {
		t.Helper()
		r.Step(t.Context(), now)
		if got := len(g.disk.reclaimed); got != want {
			t.Fatalf("%s: it was rewritten %d times, want %d", when, got, want)
		}
	}
	step(0, "an empty store")
	g.disk.bytes = 25_000
	step(1, "what lay there before this process")
	step(1, "nothing new")
	g.garbage(9000)
	step(1, "little was dropped")
	g.garbage(9000)
	step(2, "much was")
	step(2, "nothing new after that")
	g.garbage(2000)
	low = true
	step(3, "the disk is nearly full")
	if !g.disk.reclaimed[2] || g.disk.reclaimed[1] {
		t.Errorf("in a hurry: %v, want the third time alone", g.disk.reclaimed)
	}
	g.disk.fails = errors.New("no room")
	g.garbage(2000)
	step(4, "it fails")
	step(4, "just after it failed")
	now, g.disk.fails = now.Add(pace.Retry), nil
	step(5, "a minute later")
	step(5, "nothing new after all that")
	machine, release := g.stores.Machine()
	if c := &machine.Counts().Compaction; c.Reclaims.Load() != 4 || c.Failed.Load() != 1 {
		t.Errorf("counted: %d done, %d failed, want 4 and 1", c.Reclaims.Load(), c.Failed.Load())
	}
	release()
	low = false
	g.restart()
	step(6, "after a start")
	step(6, "and not again")
}
