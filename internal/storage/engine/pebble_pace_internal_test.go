package engine

import (
	"crypto/rand"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func TestPace_after(t *testing.T) {
	p := pace{factor: 10, until: 0.5}
	for _, tc := range []struct {
		committed, pressure float64
		want                time.Duration
	}{
		{0, 0, 10 * time.Millisecond},
		{0.25, 0, 5 * time.Millisecond},
		{0.5, 0, 0},
		{7, 0, 0},
		{0, 0.5, 5 * time.Millisecond},
		{0.25, 0.5, 2500 * time.Microsecond},
		{0, 1, 0},
		{0, 3, 0},
		{3, 3, 0},
	} {
		if got := p.after(time.Millisecond, tc.committed, tc.pressure); got != tc.want {
			t.Errorf("%g memtables committed, pressure %g: rests for %v, want %v", tc.committed, tc.pressure, got, tc.want)
		}
	}
}

// paced is a pacer whose time passes only when it is told so, and when it rests.
type paced struct {
	pacer
	bytes  atomic.Uint64
	time   time.Time
	rested []time.Duration
	hurry  bool
}

func newPaced() *paced {
	p := &paced{time: time.Unix(100, 0)}
	p.pacer = pacer{pace: pace{factor: 10, until: 0.5}, memTable: 1000, commits: &p.bytes,
		urgent:   func() bool { return p.hurry },
		pressure: func() float64 { return 0 },
		now:      func() time.Time { return p.time },
		sleep: func(d time.Duration) {
			p.rested = append(p.rested, d)
			p.time = p.time.Add(d)
		}}
	return p
}

// work writes to the file after so much work, and returns what it rested.
func (p *paced) work(f io.Writer, worked time.Duration) (rested time.Duration) {
	p.time = p.time.Add(worked)
	p.rested = nil
	_, _ = f.Write([]byte("x"))
	for _, d := range p.rested {
		rested += d
	}
	return rested
}

func (p *paced) create(t *testing.T) vfs.File {
	t.Helper()
	f, err := vfs.NewMem().Create("file", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	return p.file(f)
}

func TestPacer_worked(t *testing.T) {
	p := newPaced()
	p.bytes.Store(5000)
	p.begin(false)
	table, values := p.create(t), p.create(t)
	if got := p.work(table, time.Hour); got != 0 {
		t.Errorf("what was before the job counts as its work: %v", got)
	}
	if got := p.work(table, 600*time.Microsecond); got != 0 {
		t.Errorf("rests for %v after too little work", got)
	}
	if got := p.work(values, 600*time.Microsecond); got != 12*time.Millisecond {
		t.Errorf("rests for %v after 1.2 ms in two files, want 12 ms", got)
	}
	if got := p.work(table, 0); got != 0 {
		t.Errorf("the rest of one file counts as work in another: %v", got)
	}
	if got := p.work(table, time.Minute); got != 10*longestPiece {
		t.Errorf("rests for %v after a minute's wait, want %v", got, 10*longestPiece)
	}
	if got := p.work(table, -time.Hour); got != 0 {
		t.Errorf("rests for %v when the clock is set back", got)
	}
	p.bytes.Add(250)
	if got := p.work(table, time.Millisecond); got != 5*time.Millisecond {
		t.Errorf("rests for %v with a quarter of a memtable committed, want 5 ms", got)
	}
	p.bytes.Add(250)
	if got := p.work(table, time.Millisecond); got != 0 {
		t.Errorf("rests for %v with half a memtable committed", got)
	}
	p.begin(false)
	p.work(table, 0)
	if got := p.work(table, time.Millisecond); got != 10*time.Millisecond {
		t.Errorf("the next job rests for %v, want 10 ms", got)
	}
	p.hurry = true
	if got := p.work(table, time.Millisecond); got != 0 {
		t.Errorf("rests for %v although somebody waits", got)
	}
	p.hurry = false
	p.begin(true)
	p.work(table, 0)
	if got := p.work(table, time.Millisecond); got != 0 {
		t.Errorf("a late job rests for %v", got)
	}
	p.begin(false)
	p.pressure = func() float64 { return 0.5 }
	third := p.create(t)
	p.work(third, 0)
	if got := p.work(third, time.Millisecond); got != 5*time.Millisecond {
		t.Errorf("rests for %v under half of the pressure, want 5 ms", got)
	}
}

// Ensure that the work of a store that is paced rests, and that it does not for those who wait for a flush or for its end.
func TestEngine_Paced(t *testing.T) {
	for _, isPaced := range []bool{true, false} {
		flushed := make(chan struct{}, 100)
		var last atomic.Int64 // how long the last flush worked
		opened, err := Open(Options{FS: filestest.NewMem(), Dir: "store", MemTableBytes: 1 << 20, Paced: isPaced,
			Flushed: func(took time.Duration) { last.Store(int64(took)) },
			OnFlush: func() { flushed <- struct{}{} }})
		if err != nil {
			t.Fatal(err)
		}
		e := opened.(*lsm)
		var flushes, compactions atomic.Int64
		ticks := atomic.Int64{}
		for p, count := range map[*pacer]*atomic.Int64{&e.pacing.flush: &flushes, &e.pacing.compaction: &compactions} {
			p.now = func() time.Time { return time.Unix(0, ticks.Add(int64(time.Millisecond))) }
			p.sleep = func(time.Duration) {
				count.Add(1)
				ticks.Add(int64(time.Minute))
			}
		}
		put := func(i int) {
			value := make([]byte, 4<<10)
			_, _ = rand.Read(value)
			b := e.NewBatch()
			b.Set(fmt.Appendf(nil, "k%03d", i%100), value)
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		fill := func() {
			for i := range 100 {
				put(i)
			}
		}
		for len(flushed) > 0 {
			<-flushed
		}
		fill()
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		if n := flushes.Load(); n != 0 {
			t.Errorf("a flush that somebody waits for rested %d times", n)
		}
		for len(flushed) > 0 {
			<-flushed
		}
		begun := e.db.Metrics().Flush.WriteThroughput.Bytes
		for i := 0; e.db.Metrics().MemTable.Count == 1 && e.db.Metrics().Flush.WriteThroughput.Bytes == begun; i++ {
			put(i) // until a memtable is full
		}
		<-flushed
		if n := flushes.Load(); isPaced != (n > 0) || isPaced != (e.Stats().FlushRests > 0) {
			t.Errorf("paced %v: a flush rested %d times", isPaced, n)
		}
		// A rest takes a minute of the pacer's time, and nothing of Pebble's: a flush that rested has worked for less than nothing.
		if took := time.Duration(last.Load()); isPaced != (took < 0) {
			t.Errorf("paced %v: a flush worked for %v", isPaced, took)
		}
		if err := e.db.Compact(t.Context(), []byte("a"), []byte("z"), false); err != nil {
			t.Fatal(err)
		}
		if n := compactions.Load(); isPaced != (n > 0) || isPaced != (e.Stats().CompactionRests > 0) {
			t.Errorf("paced %v: compactions rested %d times", isPaced, n)
		}
		rested := compactions.Load() + flushes.Load()
		fill()
		if err := e.Defragment(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := compactions.Load() + flushes.Load() - rested; n != 0 {
			t.Errorf("Defragment rested %d times", n)
		}
		e.stalled.Store(true)
		if !e.pacing.flush.urgent() || !e.pacing.compaction.urgent() {
			t.Error("background work rests although writes wait for it")
		}
		e.stalled.Store(false)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that what is committed until a memtable is full counts as about one, also if rows are small.
func TestPacing_committed(t *testing.T) {
	const memTable = 4 << 20
	for _, sizes := range [][2]int{{9, 0}, {17, 8}, {30, 256}, {30, 1000}} {
		opened, err := Open(Options{FS: filestest.NewMem(), Dir: "store", MemTableBytes: memTable})
		if err != nil {
			t.Fatal(err)
		}
		e := opened.(*lsm)
		var counted uint64 // between the last two flushes
		for row, before := 0, e.pacing.flush.commitsBefore.Load(); e.pacing.commits.Load() < 5*memTable; {
			b := e.NewBatch()
			for range 100 {
				row++
				b.Set(fmt.Appendf(nil, "k%0*d", sizes[0]-1, row), make([]byte, sizes[1]))
			}
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
			for e.db.Metrics().Flush.NumInProgress > 0 {
				runtime.Gosched()
			}
			if at := e.pacing.flush.commitsBefore.Load(); at != before {
				counted, before = at-before, at
			}
		}
		if counted < 3*memTable/4 || counted > 5*memTable/4 { // Pebble's first memtables are smaller, not its later ones
			t.Errorf("rows of %v bytes: a memtable counts as %d bytes, want about %d", sizes, counted, memTable)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
