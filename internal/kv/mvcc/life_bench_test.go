package mvcc_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
)

// life is a load whose versions are replaced and deleted: keys are overwritten at random, and history is compacted every so
// many puts.
type life struct {
	name             string
	size, keys, puts int
	window           int // puts between two compactions
	batch            int
	authors          int // that put in turn; zero: they are not kept
}

// BenchmarkLife measures the cost of a put in the store, from the call to the deletion of the version that it replaced.
//
//	go test ./internal/kv/mvcc -run xxx -bench Life -benchtime 1x
func BenchmarkLife(b *testing.B) {
	for _, l := range []life{
		{"256B", 256, 10_000, 200_000, 20_000, 32, 0},
		{"256B-authors", 256, 10_000, 200_000, 20_000, 32, 3},
		{"256B-wide", 256, 200_000, 400_000, 40_000, 32, 0},
		{"256B-wide-authors", 256, 200_000, 400_000, 40_000, 32, 3},
		{"1KB", 1024, 20_000, 100_000, 10_000, 32, 0},
		{"10KB", 10 << 10, 4_000, 40_000, 5_000, 8, 0},
	} {
		b.Run(l.name, func(b *testing.B) {
			for b.Loop() {
				l.run(b)
			}
		})
	}
}

func (l *life) run(b *testing.B) {
	s, eng := benchStore(b, mvcc.Options{})
	r := rand.New(rand.NewPCG(1, 1))
	values := make([][]byte, 64)
	for i := range values {
		values[i] = benchValue(r, l.size)
	}
	var listed, compacting, spent time.Duration
	pages, rows := 0, 0
	start := cpu(b)
	wall := time.Now()
	for put := 0; put < l.puts; {
		w := s.Begin()
		for range l.batch {
			k := put
			if put >= l.keys {
				k = r.IntN(l.keys)
			}
			if l.authors > 0 {
				w.Attribute(&kv.Author{Member: uint64(put % l.authors), User: "kube-apiserver"})
			}
			w.BeginCommand()
			w.Put(benchKey(k), values[put%64], 0)
			w.EndCommand()
			put++
		}
		before := put - l.batch
		due := put/l.window != before/l.window
		if due {
			if err := w.Compact(w.Revision() - 1); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Commit(); err != nil {
			b.Fatal(err)
		}
		if due {
			at := cpu(b)
			l.compact(b, s)
			compacting += cpu(b) - at
		}
		if put >= l.keys && put/(l.window/2) != before/(l.window/2) {
			at := cpu(b)
			n, p := l.list(b, s)
			rows, pages = rows+n, pages+p
			listed += cpu(b) - at
		}
	}
	if err := eng.Flush(); err != nil {
		b.Fatal(err)
	}
	idle(eng)
	spent = cpu(b) - start - listed
	raw := float64(l.puts * (l.size + len(benchKey(0))))
	stats := eng.Stats()
	us := func(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) / 1000 }
	b.ReportMetric(us(spent, l.puts), "µs/put")
	b.ReportMetric(us(compacting, l.puts), "µs/put-compaction")
	b.ReportMetric(us(listed, rows), "µs/listed")
	b.ReportMetric(float64(stats.FlushedBytes)/raw, "flushed/raw")
	b.ReportMetric(float64(stats.FlushedBytes+stats.CompactedBytes)/raw, "written/raw")
	b.ReportMetric(float64(stats.DiskBytes)/float64(l.keys*(l.size+len(benchKey(0)))), "disk/live")
	b.ReportMetric(time.Since(wall).Seconds(), "s")
}

// idle waits until the store has no background work.
func idle(eng engine.Engine) {
	type background interface{ Background() engine.Background }
	for range 1 << 20 {
		if found := eng.(background).Background(); found == (engine.Background{}) {
			return
		}
		runtime.Gosched()
	}
}

func (l *life) compact(b *testing.B, s *mvcc.Store) {
	for done := false; !done; {
		var err error
		if done, err = s.CompactStep(1000); err != nil {
			b.Fatal(err)
		}
	}
}

// list reads 4,000 keys, or all if there are fewer, in pages of 500.
func (l *life) list(b *testing.B, s *mvcc.Store) (rows, pages int) {
	key, end := []byte("/registry/"), fmt.Appendf(nil, "/registry/pods/ns-%03d/", min(100*4000/l.keys, 100))
	for {
		found, _, err := s.Range(&kv.RangeOp{Key: key, End: end, Limit: 500})
		if err != nil {
			b.Fatal(err)
		}
		rows, pages = rows+len(found.KVs), pages+1
		if !found.More {
			return rows, pages
		}
		key = append(found.KVs[len(found.KVs)-1].Key, 0)
	}
}
