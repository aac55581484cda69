package mvcc_test

import (
	"bufio"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// residentMiB is the process's resident memory.
func residentMiB(b *testing.B) float64 {
	b.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0 // not Linux
	}
	defer func() {
		if err := f.Close(); err != nil {
			b.Error(err)
		}
	}()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "VmRSS:"); found {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	return 0
}

// BenchmarkFootprint writes a million keys of 256 bytes, changes some at random, compacts, and reads, and reports the memory of
// the process and the processor time of each part, flushes and LSM compactions included. Run it with -benchtime 1x.
func BenchmarkFootprint(b *testing.B) {
	const keys = 1_000_000
	const changes = 200_000
	s, eng := benchStore(b, mvcc.Options{})
	r := rand.New(rand.NewPCG(1, 1))
	part := func(name string, n int, work func()) {
		start := cpu(b)
		work()
		b.ReportMetric(float64((cpu(b)-start).Microseconds())/float64(n), "µs/"+name)
	}
	puts := func(count int, next func(i int) int) {
		for i := 0; i < count; {
			w := s.Begin()
			for range 64 {
				w.BeginCommand()
				w.Put(benchKey(next(i)), benchValue(r, 256), 0)
				w.EndCommand()
				i++
			}
			if err := w.Commit(); err != nil {
				b.Fatal(err)
			}
		}
		if err := eng.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		part("fresh-put", keys, func() { puts(keys, func(i int) int { return i }) })
		b.ReportMetric(residentMiB(b), "MiB-after-fresh")
		part("random-put", changes, func() { puts(changes, func(int) int { return r.IntN(keys) }) })
		b.ReportMetric(residentMiB(b), "MiB-after-random")
		part("compacted", changes, func() {
			w := s.Begin()
			if err := w.Compact(w.Revision()); err != nil {
				b.Fatal(err)
			}
			if err := w.Commit(); err != nil {
				b.Fatal(err)
			}
			for done := false; !done; {
				var err error
				if done, err = s.CompactStep(1000); err != nil {
					b.Fatal(err)
				}
			}
		})
		part("random-get", 50_000, func() {
			for range 50_000 {
				if _, err := s.Get(benchKey(r.IntN(keys))); err != nil {
					b.Fatal(err)
				}
			}
		})
		part("counted-key", keys, func() {
			if _, _, err := s.Range(&kv.RangeOp{Key: []byte("/"), End: []byte("0"), CountOnly: true}); err != nil {
				b.Fatal(err)
			}
		})
		b.ReportMetric(residentMiB(b), "MiB-at-the-end")
		size := s.Size()
		b.ReportMetric(float64(size.LogicalBytes)/1e6, "logical-MB")
		b.ReportMetric(float64(size.DiskBytes)/1e6, "disk-MB")
	}
}
