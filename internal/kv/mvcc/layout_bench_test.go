package mvcc_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/engine"
)

// The layouts that ADR 5 compares, each reduced to the rows it writes. They share keys, values and the engine; none has
// a cache before it. Repeat with
//
//	go test ./internal/kv/mvcc -run xxx -bench Layout -benchtime 1x
type layout interface {
	put(b engine.Batch, key, value, before []byte, rev uint64)
	get(eng engine.Engine, key []byte) ([]byte, error)
	scan(eng engine.Engine, lower []byte, limit int) (int, error)
	changes(eng engine.Engine, from uint64, limit int) (int, error)
}

func prefixOf(key []byte) []byte { return append(append([]byte{'d'}, key...), 0, 1) }

func suffixed(prefix []byte, rev uint64) []byte {
	out := binary.BigEndian.AppendUint64(bytes.Clone(prefix), ^rev)
	return append(out, 0xff, 0xff, 0xff, 0xff)
}

func changeKey(rev uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'r'}, rev) }

// byKey: (key, newest first) -> value; revision -> key.
type byKey struct{}

func (byKey) put(b engine.Batch, key, value, _ []byte, rev uint64) {
	b.Set(suffixed(prefixOf(key), rev), value)
	b.Set(changeKey(rev), key)
}

func (byKey) get(eng engine.Engine, key []byte) ([]byte, error) {
	it, err := eng.NewIter(nil, nil)
	if err != nil {
		return nil, err
	}
	var value []byte
	if it.SeekPrefix(prefixOf(key)) {
		value = bytes.Clone(it.Value())
	}
	return value, it.Close()
}

func (byKey) scan(eng engine.Engine, lower []byte, limit int) (int, error) {
	it, err := eng.NewIter(prefixOf(lower), []byte{'e'})
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := it.First(); ok && n < limit; ok = it.NextPrefix() {
		sink = append(sink[:0], it.Value()...)
		n++
	}
	return n, it.Close()
}

func (byKey) changes(eng engine.Engine, from uint64, limit int) (int, error) {
	it, err := eng.NewIter(changeKey(from), []byte{'s'})
	if err != nil {
		return 0, err
	}
	versions, err := eng.NewIter([]byte{'d'}, []byte{'e'})
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := it.First(); ok && n < limit; ok = it.Next() {
		rev := binary.BigEndian.Uint64(it.Key()[1:])
		if versions.SeekGE(suffixed(prefixOf(it.Value()), rev)) {
			sink = append(sink[:0], versions.Value()...)
			n++
		}
	}
	if err := versions.Close(); err != nil {
		return 0, err
	}
	return n, it.Close()
}

// byRevision is etcd's: revision -> key and value; its index, which etcd holds in memory, is (key, newest first) ->
// nothing.
type byRevision struct{}

func (byRevision) put(b engine.Batch, key, value, _ []byte, rev uint64) {
	b.Set(suffixed(prefixOf(key), rev), nil)
	b.Set(changeKey(rev), append(append(binary.AppendUvarint(nil, uint64(len(key))), key...), value...))
}

func (byRevision) read(it engine.Iterator, key []byte) bool {
	rev := ^binary.BigEndian.Uint64(key[len(key)-engine.SuffixLen:])
	if !it.SeekGE(changeKey(rev)) {
		return false
	}
	sink = append(sink[:0], it.Value()...)
	return true
}

func (l byRevision) get(eng engine.Engine, key []byte) ([]byte, error) {
	it, err := eng.NewIter(nil, nil)
	if err != nil {
		return nil, err
	}
	if it.SeekPrefix(prefixOf(key)) {
		own := bytes.Clone(it.Key())
		l.read(it, own)
	}
	return sink, it.Close()
}

func (l byRevision) scan(eng engine.Engine, lower []byte, limit int) (int, error) {
	it, err := eng.NewIter(prefixOf(lower), []byte{'e'})
	if err != nil {
		return 0, err
	}
	values, err := eng.NewIter([]byte{'r'}, []byte{'s'})
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := it.First(); ok && n < limit; ok = it.NextPrefix() {
		if l.read(values, it.Key()) {
			n++
		}
	}
	if err := values.Close(); err != nil {
		return 0, err
	}
	return n, it.Close()
}

func (byRevision) changes(eng engine.Engine, from uint64, limit int) (int, error) {
	it, err := eng.NewIter(changeKey(from), []byte{'s'})
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := it.First(); ok && n < limit; ok = it.Next() {
		sink = append(sink[:0], it.Value()...)
		n++
	}
	return n, it.Close()
}

// currentAndHistory: key -> value now; (key, newest first) -> older values; revision -> key. A put moves the value that it
// replaces.
type currentAndHistory struct{}

func currentKey(key []byte) []byte { return append([]byte{'k'}, key...) }

func (currentAndHistory) put(b engine.Batch, key, value, before []byte, rev uint64) {
	b.Set(currentKey(key), binary.BigEndian.AppendUint64(bytes.Clone(value), rev))
	if before != nil {
		n := len(before) - 8
		b.Set(suffixed(prefixOf(key), binary.BigEndian.Uint64(before[n:])), before[:n])
	}
	b.Set(changeKey(rev), key)
}

func (currentAndHistory) get(eng engine.Engine, key []byte) ([]byte, error) {
	value, _, err := eng.Get(currentKey(key))
	return value, err
}

func (currentAndHistory) scan(eng engine.Engine, lower []byte, limit int) (int, error) {
	it, err := eng.NewIter(currentKey(lower), []byte{'l'})
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := it.First(); ok && n < limit; ok = it.Next() {
		sink = append(sink[:0], it.Value()...)
		n++
	}
	return n, it.Close()
}

func (currentAndHistory) changes(eng engine.Engine, from uint64, limit int) (int, error) {
	it, err := eng.NewIter(changeKey(from), []byte{'s'})
	if err != nil {
		return 0, err
	}
	other, err := eng.NewIter(nil, nil)
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := it.First(); ok && n < limit; ok = it.Next() {
		rev := binary.BigEndian.Uint64(it.Key()[1:])
		if other.SeekGE(currentKey(it.Value())) {
			value := other.Value()
			if binary.BigEndian.Uint64(value[len(value)-8:]) != rev {
				other.SeekGE(suffixed(prefixOf(it.Value()), rev))
			}
			sink = append(sink[:0], other.Value()...)
			n++
		}
	}
	if err := other.Close(); err != nil {
		return 0, err
	}
	return n, it.Close()
}

var sink []byte

// cpu is the processor time of the process so far: steadier than the clock on a shared machine, and it counts background work.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkLayout(b *testing.B) {
	for name, l := range map[string]layout{
		"byKey": byKey{}, "byRevision": byRevision{}, "currentAndHistory": currentAndHistory{},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				runLayout(b, l)
			}
		})
	}
}

// runLayout writes 150,000 keys and then changes 300,000 at random, and reads: a working set beyond the block cache.
func runLayout(b *testing.B, l layout) {
	const keys, puts = 150_000, 450_000
	eng, err := engine.Open(engine.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	fail := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	start := cpu(b)
	rev := uint64(1)
	for rev <= puts {
		batch := eng.NewBatch()
		for range 64 {
			i := int(rev) - 1
			if i >= keys {
				i = r.IntN(keys)
			}
			var before []byte
			if _, moves := l.(currentAndHistory); moves && int(rev) > keys {
				before, _, err = eng.Get(currentKey(benchKey(i)))
				fail(err)
			}
			l.put(batch, benchKey(i), benchValue(r, 256), before, rev)
			rev++
		}
		fail(batch.Commit())
		fail(batch.Close())
	}
	fail(eng.Flush())
	per := func(name string, n int, work func(i int)) {
		start := cpu(b)
		for i := range n {
			work(i)
		}
		b.ReportMetric(float64((cpu(b)-start).Nanoseconds())/float64(n)/1000, name)
	}
	b.ReportMetric(float64((cpu(b)-start).Nanoseconds())/puts/1000, "µs/put")
	raw := float64(puts * (256 + len(benchKey(0))))
	stats := eng.Stats()
	b.ReportMetric(float64(stats.FlushedBytes+stats.CompactedBytes)/raw, "written/raw")
	b.ReportMetric(float64(stats.DiskBytes)/raw, "disk/raw")
	per("µs/get", 20_000, func(int) {
		_, err := l.get(eng, benchKey(r.IntN(keys)))
		fail(err)
	})
	per("µs/scan100", 2000, func(int) {
		_, err := l.scan(eng, benchKey(r.IntN(keys-10_000)), 100)
		fail(err)
	})
	per("µs/changes1000", 100, func(int) {
		_, err := l.changes(eng, r.Uint64N(puts-1000), 1000)
		fail(err)
	})
	fail(eng.Close())
}
