package mvcc_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// BenchmarkCountPrefix counts a million keys with values of 64 bytes, now and before the last hundredth of them was put, as a
// count and as a page of a range: before the keys are counted by interval, and after. COUNT_KEYS is another number of keys: 10
// million take 1.5 GB of disk.
//
//	COUNT_KEYS=10000000 go test ./internal/kv/mvcc -run xxx -bench CountPrefix -benchtime 1x -timeout 20m
func BenchmarkCountPrefix(b *testing.B) {
	keys, err := strconv.Atoi(os.Getenv("COUNT_KEYS"))
	if err != nil {
		keys = 1_000_000
	}
	c := &counted{b: b, keys: keys}
	var eng interface{ Flush() error }
	c.store, eng = c.fill()
	prefix := kv.RangeOp{Key: []byte("/registry/pods/"), End: []byte("/registry/pods0"), CountOnly: true}
	part, page, old := prefix, prefix, prefix
	part.Key, part.End = c.key(keys/10), c.key(keys/10*9)
	page.CountOnly, page.Limit, old.Revision = false, 500, c.then
	for b.Loop() {
		if err := eng.Flush(); err != nil {
			b.Fatal(err)
		}
		c.read("uncounted", &prefix, keys)
		c.divide()
		c.read("now", &prefix, keys)
		c.read("older", &old, keys-keys/100)
		c.read("part", &part, keys/10*8)
		c.read("page", &page, keys)
		b.ReportMetric(float64(c.store.CountStats().Bytes)/1e6, "MB-of-memory")
	}
}

// counted is a store whose keys are counted.
type counted struct {
	b     *testing.B
	keys  int
	store *mvcc.Store
	then  kv.Revision // before the last hundredth of the keys was put
}

func (c *counted) key(i int) []byte {
	return fmt.Appendf(nil, "/registry/pods/ns-%03d/pod-%08d", i*100/c.keys, i)
}

// fill returns a store that was opened on keys.
func (c *counted) fill() (*mvcc.Store, interface{ Flush() error }) {
	s, eng := benchStore(c.b, mvcc.Options{})
	r := rand.New(rand.NewPCG(1, 1))
	values := make([][]byte, 64)
	for i := range values {
		values[i] = benchValue(r, 64)
	}
	put := func(due func(i int) bool) {
		for i := 0; i < c.keys; {
			w := s.Begin()
			for n := 0; n < 1000 && i < c.keys; i++ {
				if due(i) {
					w.BeginCommand()
					w.Put(c.key(i), values[i%len(values)], 0)
					w.EndCommand()
					n++
				}
			}
			if err := w.Commit(); err != nil {
				c.b.Fatal(err)
			}
		}
	}
	put(func(i int) bool { return i%100 != 99 })
	c.then = s.Revision()
	put(func(i int) bool { return i%100 == 99 })
	s, err := mvcc.Open(eng, mvcc.Options{}) // as after a restart
	if err != nil {
		c.b.Fatal(err)
	}
	return s, eng
}

func (c *counted) read(name string, op *kv.RangeOp, want int) {
	c.b.Helper()
	start, began := cpu(c.b), time.Now()
	got, _, err := c.store.Range(op)
	if err != nil || got.Count != int64(want) {
		c.b.Fatalf("%s: got %d, %v, want %d", name, got.Count, err, want)
	}
	c.b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms-"+name)
	c.b.ReportMetric(float64((cpu(c.b)-start).Microseconds())/1000, "cpu-ms-"+name)
}

// divide counts by interval.
func (c *counted) divide() {
	start, steps, longest := cpu(c.b), 0, time.Duration(0)
	for done := false; !done; steps++ {
		at := cpu(c.b)
		var err error
		if done, err = c.store.CountStep(); err != nil {
			c.b.Fatal(err)
		}
		longest = max(longest, cpu(c.b)-at)
	}
	c.b.ReportMetric((cpu(c.b) - start).Seconds(), "cpu-s-to-count")
	c.b.ReportMetric(float64(steps), "steps")
	c.b.ReportMetric(float64(longest.Microseconds())/1000, "cpu-ms-longest-step")
}
