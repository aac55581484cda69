package memory

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Between two collections the heap may grow by what the load allocates in gcPeriod, so that a member that does little has
// little garbage, and one that does much spends little on collecting it: at least leastGrowth; at most to busyHeap, or by
// growthPart of what lives, whichever is more.
const (
	gcPeriod    = time.Second / 2
	leastGrowth = 8 << 20
	busyHeap    = 128 << 20
	growthPart  = 0.3

	// lookEvery is how often the growth is fitted to the load while no collection does it: after a burst the next one may be
	// minutes away.
	lookEvery = 5 * time.Second
)

// Govern bounds the heap of this process from now on. GOGC and GOMEMLIMIT in the environment have precedence, each over
// its half.
func Govern(s Shares) {
	if os.Getenv("GOMEMLIMIT") == "" {
		limit := s.Heap
		if !HeapHasAll {
			limit -= MemTables*s.MemTable + s.Blocks
		}
		debug.SetMemoryLimit(limit)
	}
	if os.Getenv("GOGC") != "" {
		return
	}
	g := &governor{percent: 100, last: readHeap(), at: time.Now()}
	debug.SetGCPercent(g.percent)
	afterCollection(func() { g.look(true) })
	time.AfterFunc(lookEvery, g.lookAgain)
}

// governor sets how far the heap may grow before the next collection.
type governor struct {
	mu      sync.Mutex
	percent int
	last    heap
	at      time.Time // of last
}

// heap is what the runtime counts.
type heap struct {
	scanned   uint64 // by the last collection, which the percentage refers to: live objects, stacks and globals
	live      uint64 // objects after it
	allocated uint64 // ever
	cycles    uint64
}

func (g *governor) lookAgain() {
	g.look(false)
	time.AfterFunc(lookEvery, g.lookAgain)
}

// look fits the growth to what was allocated since the last look. Between collections it only lowers it.
func (g *governor) look(collected bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, at := readHeap(), time.Now()
	percent := growthPercent(now, growth(now.live, now.allocated-g.last.allocated, at.Sub(g.at)))
	if collected || now.cycles == g.last.cycles && at.Sub(g.at) >= lookEvery {
		if !collected {
			percent = min(percent, g.percent)
		}
		g.last, g.at = now, at
		if percent != g.percent {
			g.percent = percent
			debug.SetGCPercent(percent)
		}
	}
}

// growth is how many bytes may be allocated until the next collection, if so many were in the time before.
func growth(live, allocated uint64, took time.Duration) uint64 {
	most := max(busyHeap-float64(live), growthPart*float64(live))
	if took <= 0 {
		return uint64(most)
	}
	return uint64(max(min(float64(allocated)*float64(gcPeriod)/float64(took), most), leastGrowth))
}

// growthPercent is that as the runtime wants it.
func growthPercent(h heap, growth uint64) int {
	if h.scanned == 0 {
		return 100
	}
	return int(min(max(1, 100*float64(growth)/float64(h.scanned)), math.MaxInt16))
}

func readHeap() heap {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return samples[i].Value.Uint64()
	}
	return heap{live: value(0), scanned: value(0) + value(1) + value(2), allocated: value(3), cycles: value(4)}
}

// afterCollection calls f after each collection: whenever an object without references has been found dead.
func afterCollection(f func()) {
	type sentinel struct{ _ [16]byte }
	var finalize func(*sentinel)
	finalize = func(s *sentinel) {
		f()
		runtime.SetFinalizer(s, finalize)
	}
	runtime.SetFinalizer(&sentinel{}, finalize)
}
