package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The heap may grow to heapFloorBytes before it is collected, and beyond that to heapGrowth times what is live. Most of
// a member's heap is caches and write buffers of fixed size: Go's default of twice the live heap would take a third more
// memory than that for nothing, while a small fixed percentage would collect a small heap far too often.
const (
	heapFloorBytes = 128 << 20
	heapGrowth     = 1.3
)

// boundHeap adjusts the collector's goal after each collection. GOGC in the environment switches it off.
func boundHeap() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(100)
	afterCollection(func() { debug.SetGCPercent(gcPercent(liveHeapBytes())) })
}

// gcPercent is how much the heap may grow, in percent of what is live.
func gcPercent(live uint64) int {
	if live == 0 {
		return 100
	}
	goal := max(float64(heapFloorBytes), float64(live)*heapGrowth)
	return int((goal/float64(live) - 1) * 100)
}

func liveHeapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// afterCollection calls f after each collection: whenever an object that nobody holds has been found dead.
func afterCollection(f func()) {
	type sentinel struct{ _ [16]byte }
	var finalize func(*sentinel)
	finalize = func(s *sentinel) {
		f()
		runtime.SetFinalizer(s, finalize)
	}
	runtime.SetFinalizer(&sentinel{}, finalize)
}
