package mvcc_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
)

func benchStore(b *testing.B, options mvcc.Options) (*mvcc.Store, engine.Engine) {
	b.Helper()
	eng, err := engine.Open(engine.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := eng.Close(); err != nil {
			b.Error(err)
		}
	})
	s, err := mvcc.Open(eng, options)
	if err != nil {
		b.Fatal(err)
	}
	return s, eng
}

func benchKey(i int) []byte { return fmt.Appendf(nil, "/registry/pods/ns-%03d/pod-%08d", i%100, i) }

// benchValue is half random, so that it compresses like JSON does.
func benchValue(r *rand.Rand, size int) []byte {
	v := make([]byte, size)
	for i := 0; i+8 <= size/2; i += 8 {
		binary.LittleEndian.PutUint64(v[i:], r.Uint64())
	}
	return v
}

func fill(b *testing.B, s *mvcc.Store, keys, versions int) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	for range versions {
		for i := 0; i < keys; {
			w := s.Begin()
			for n := 0; n < 100 && i < keys; n, i = n+1, i+1 {
				w.BeginCommand()
				w.Put(benchKey(i), benchValue(r, 256), 0)
				w.EndCommand()
			}
			if err := w.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkPut includes flushes and LSM compactions as they come; batch is the number of commands per commit.
func BenchmarkPut(b *testing.B) {
	for _, batch := range []int{1, 16, 128} {
		for _, keys := range []string{"fresh", "hot-1000", "random-of-200000"} {
			b.Run(fmt.Sprintf("batch=%d/%s", batch, keys), func(b *testing.B) {
				s, eng := benchStore(b, mvcc.Options{})
				r := rand.New(rand.NewPCG(1, 1))
				value := benchValue(r, 256)
				if keys == "random-of-200000" {
					fill(b, s, 200_000, 1)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i := 0; i < b.N; {
					w := s.Begin()
					for n := 0; n < batch && i < b.N; n, i = n+1, i+1 {
						k := i
						switch keys {
						case "hot-1000":
							k = r.IntN(1000)
						case "random-of-200000":
							k = r.IntN(200_000)
						}
						w.BeginCommand()
						w.Put(benchKey(k), value, 0)
						w.EndCommand()
					}
					if err := w.Commit(); err != nil {
						b.Fatal(err)
					}
				}
				if err := eng.Flush(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	const keys = 200_000
	for _, cache := range []string{"cached", "uncached"} {
		s, eng := benchStore(b, map[string]mvcc.Options{"cached": {}, "uncached": {CacheBytes: -1}}[cache])
		fill(b, s, keys, 2)
		if err := eng.Flush(); err != nil {
			b.Fatal(err)
		}
		for name, pick := range map[string]func(r *rand.Rand) []byte{
			"hot-10000": func(r *rand.Rand) []byte { return benchKey(r.IntN(10_000)) },
			"random":    func(r *rand.Rand) []byte { return benchKey(r.IntN(keys)) },
			"missing":   func(r *rand.Rand) []byte { return append(benchKey(r.IntN(keys)), 'x') },
		} {
			b.Run(cache+"/"+name, func(b *testing.B) {
				r := rand.New(rand.NewPCG(2, 2))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Get(pick(r)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRange(b *testing.B) {
	s, eng := benchStore(b, mvcc.Options{})
	fill(b, s, 200_000, 2)
	if err := eng.Flush(); err != nil {
		b.Fatal(err)
	}
	for name, op := range map[string]kv.RangeOp{
		"keys=100":         {Limit: 0, Key: benchKey(4200), End: []byte("/registry/pods/ns-000/pod-00014200")},
		"keys=1000":        {Key: []byte("/registry/pods/ns-007/pod-000"), End: []byte("/registry/pods/ns-007/pod-001")},
		"count=2000":       {Key: []byte("/registry/pods/ns-007/"), End: []byte("/registry/pods/ns-0070"), CountOnly: true},
		"all,limit=100":    {Key: []byte{0}, End: []byte{0}, Limit: 100},
		"prefix,limit=100": {Key: []byte("/registry/"), End: []byte("/registry0"), Limit: 100},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				result, _, err := s.Range(&op)
				if err != nil {
					b.Fatal(err)
				}
				n = len(result.KVs)
			}
			b.ReportMetric(float64(n), "kvs")
		})
	}
}

// copier copies the rows into the same memory again and again, as the encoder of an answer does into chunks.
type copier struct {
	chunk [16 << 10]byte
	used  int
}

func (c *copier) Reset() { c.used = 0 }

func (c *copier) Append(pair *kv.KeyValue) error {
	for _, src := range [][]byte{pair.Key, pair.Value} {
		for len(src) > 0 {
			if c.used == len(c.chunk) {
				c.used = 0
			}
			n := copy(c.chunk[c.used:], src)
			c.used, src = c.used+n, src[n:]
		}
	}
	return nil
}

// BenchmarkList lists objects as a Kubernetes API server does: all of them in pages of 500.
//
//	go test ./internal/kv/mvcc -run xxx -bench BenchmarkList
func BenchmarkList(b *testing.B) {
	for _, bc := range []struct{ size, keys int }{{256, 100_000}, {10 << 10, 4_000}} {
		for _, where := range []string{"memory", "disk", "disk, half of it newer"} {
			b.Run(fmt.Sprintf("%d B/%s", bc.size, where), func(b *testing.B) {
				s, eng := benchStore(b, mvcc.Options{})
				r := rand.New(rand.NewPCG(1, 1))
				write := func(first, step int) {
					for i := first; i < bc.keys; i += step {
						w := s.Begin()
						w.BeginCommand()
						w.Put(benchKey(i), benchValue(r, bc.size), 0)
						w.EndCommand()
						if err := w.Commit(); err != nil {
							b.Fatal(err)
						}
					}
				}
				write(0, 1)
				if where != "memory" {
					if err := eng.Flush(); err != nil {
						b.Fatal(err)
					}
				}
				if where == "disk, half of it newer" {
					write(0, 2)
					if err := eng.Flush(); err != nil {
						b.Fatal(err)
					}
				}
				var into copier
				b.ReportAllocs()
				start := cpu(b)
				for b.Loop() {
					for op := (kv.RangeOp{Key: []byte{0}, End: []byte{0}, Limit: 500}); ; {
						page, err := s.RangeInto(&op, true, nil, &into)
						if err != nil {
							b.Fatal(err)
						}
						if !page.Result.More {
							break
						}
						op.Key, op.Revision = append(page.Last, 0), page.Revision
					}
				}
				b.ReportMetric(float64((cpu(b)-start).Nanoseconds())/float64(b.N*bc.keys), "cpu-ns/key")
			})
		}
	}
}
