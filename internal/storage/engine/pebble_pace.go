package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pace says how much a kind of background work rests. Pebble flushes and compacts as fast as it can. Members fill their
// memtables at the same time, so all of them do that at once, and requests wait for a processor. With Options.Paced each
// stretch of such work is followed by a rest, which becomes shorter as the next memtable fills, so that writes need not wait
// for work that rested. ADR 0046 has figures.
type pace struct {
	factor float64 // length of a rest, as a multiple of the work before it, if nothing is committed meanwhile
	until  float64 // rests end when this many memtables were committed since the job began
}

var (
	flushPace      = pace{factor: 16, until: 0.5}
	compactionPace = pace{factor: 4, until: 2}
)

const (
	// restAfter is how much work comes before a rest: many short rests would cost more than they give.
	restAfter = time.Millisecond
	// longestPiece is the most that counts between two calls of worked. A longer one waited for a processor or a disk.
	longestPiece = 4 * time.Millisecond
	// nodeBytes is roughly what a row takes in a memtable beside its bytes in a batch.
	nodeBytes = 45
)

// after returns how long to rest after some work. committed is how many memtables were committed since the job began; pressure,
// from 0 to 1, shortens rests: 1 allows none.
func (p pace) after(worked time.Duration, committed, pressure float64) time.Duration {
	return time.Duration(float64(worked) * p.factor * max(0, 1-committed/p.until) * max(0, 1-pressure))
}

// pacer makes one kind of work rest. The goroutines that write the files of one job take turns: while one rests all do.
type pacer struct {
	pace     pace
	memTable uint64         // bytes of one
	commits  *atomic.Uint64 // bytes that were committed to the store, as they count in a memtable
	urgent   func() bool
	pressure func() float64 // asked for each file
	now      func() time.Time
	sleep    func(time.Duration)

	// Atomic: begin runs with Pebble's locks held and must not wait for mu, which a rest holds.
	commitsBefore atomic.Uint64 // commits when the job began
	restedBefore  atomic.Int64  // rested when it began
	behind        atomic.Bool   // it began too late
	fresh         atomic.Bool   // it has not worked yet

	rested atomic.Int64 // nanoseconds, of all jobs

	mu           sync.Mutex
	filePressure float64       // when the job began its last file
	last         time.Time     // when the last piece of work or rest ended
	work         time.Duration // since the last rest
}

// begin notes that a job begins.
func (p *pacer) begin(behind bool) {
	p.commitsBefore.Store(p.commits.Load())
	p.restedBefore.Store(p.rested.Load())
	p.behind.Store(behind)
	p.fresh.Store(true)
}

// rests returns how long the job has rested.
func (p *pacer) rests() time.Duration { return time.Duration(p.rested.Load() - p.restedBefore.Load()) }

// file notes that the job begins to write a file, and returns it so that work on it rests.
func (p *pacer) file(f vfs.File) vfs.File {
	pressure := p.pressure()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filePressure = pressure
	return &pacedFile{f, p}
}

// worked is called after each little piece of work, and rests if it is time to.
func (p *pacer) worked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.fresh.Swap(false) {
		p.last, p.work = now, 0 // what was before is no work
		return
	}
	p.work += min(max(0, now.Sub(p.last)), longestPiece)
	if p.last = now; p.work < restAfter {
		return
	}
	committed := float64(p.commits.Load()-p.commitsBefore.Load()) / float64(p.memTable)
	rest := p.pace.after(p.work, committed, p.filePressure)
	p.work = 0
	if rest > 0 && !p.behind.Load() && !p.urgent() {
		p.sleep(rest)
		p.last = p.now()
		p.rested.Add(int64(p.last.Sub(now))) // sleep is late when processors are busy
	}
}

// pacedFile is a table, or a file of values, that a job writes.
type pacedFile struct {
	vfs.File
	pacer *pacer
}

// Write implements vfs.File.
func (f *pacedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.pacer.worked()
	return n, err
}

// pacedFilter tells a pacer of the keys of a table, since Pebble keeps much of a table in memory until its end. It makes and
// reads the same filters as the policy within.
type pacedFilter struct {
	pebble.FilterPolicy
	pacer *pacer
}

// NewWriter implements pebble.FilterPolicy.
func (f pacedFilter) NewWriter(kind pebble.FilterType) pebble.FilterWriter {
	return &pacedFilterWriter{FilterWriter: f.FilterPolicy.NewWriter(kind), pacer: f.pacer}
}

type pacedFilterWriter struct {
	pebble.FilterWriter
	pacer *pacer
	keys  int
}

// keysATick are about as much work as a write to a file.
const keysATick = 32

// AddKey implements pebble.FilterWriter.
func (w *pacedFilterWriter) AddKey(key []byte) {
	w.FilterWriter.AddKey(key)
	if w.keys++; w.keys%keysATick == 0 {
		w.pacer.worked()
	}
}

// pacing is what paces the work of a store.
type pacing struct {
	commits           atomic.Uint64 // bytes, as they count in a memtable
	hurries           atomic.Int32  // calls that wait: for a flush, or for Defragment
	flush, compaction pacer
}

// committed counts a batch of so many rows.
func (p *pacing) committed(bytes, rows int) { p.commits.Add(uint64(bytes + nodeBytes*rows)) }
