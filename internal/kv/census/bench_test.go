package census_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/census"
)

const benchKeys = 5000 * census.DefaultKeys

func benchKey(i int) []byte { return fmt.Appendf(nil, "/registry/pods/ns-%09d", i) }

// tenMillion returns a census of ten million keys, and keys between them.
func tenMillion(b *testing.B) (c *census.Census, between [][]byte) {
	b.Helper()
	c = census.New(false, 1, census.Options{})
	for at := 0; at < benchKeys; {
		s, _ := c.Begin()
		for at < benchKeys && !s.Add(benchKey(at), []census.Version{{Revision: 1, Live: true}}, true) {
			at++
		}
		c.Finish(s, at == benchKeys)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 1 << 16 {
		between = append(between, append(benchKey(r.IntN(benchKeys)), 'x'))
	}
	return c, between
}

// cpuTime is the CPU time of the process so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkCensus_Apply creates and deletes keys anywhere among ten million, 64 at once, with the logs at their bound.
func BenchmarkCensus_Apply(b *testing.B) {
	c, keys := tenMillion(b)
	changes := make([]census.Change, 64)
	b.ReportAllocs()
	start, rev, longest := cpuTime(b), kv.Revision(1), time.Duration(0)
	for n := 0; b.Loop(); {
		for i := range changes {
			rev++
			changes[i] = census.Change{Key: keys[n%len(keys)], Revision: rev, Born: n/len(keys)%2 == 0}
			n++
		}
		at := cpuTime(b)
		c.Apply(changes, rev, 0)
		longest = max(longest, cpuTime(b)-at)
	}
	b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(b.N*len(changes)), "cpu-ns/change")
	b.ReportMetric(float64(longest.Microseconds()), "cpu-us-longest-batch")
}

// BenchmarkCensus_Count counts ten million keys, now and before the last changes.
func BenchmarkCensus_Count(b *testing.B) {
	c, keys := tenMillion(b)
	rev := kv.Revision(1)
	for i := range 100_000 {
		rev++
		c.Apply([]census.Change{{Key: keys[i%len(keys)], Revision: rev, Born: i/len(keys)%2 == 0}}, rev, 0)
	}
	for _, ago := range []kv.Revision{0, 90_000} {
		b.Run(fmt.Sprintf("%d-changes-ago", ago), func(b *testing.B) {
			start := cpuTime(b)
			for b.Loop() {
				if n, walk := c.Count([]byte("/"), []byte("0"), rev-ago); n == 0 || len(walk) > 2 {
					b.Fatal(n, len(walk))
				}
			}
			b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
