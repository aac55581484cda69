package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// BenchmarkStore_put counts the bytes of rows for puts of 256 bytes over 1,000 keys, 16 in a commit, and those that a flush of
// them writes: one memtable holds all of it.
func BenchmarkStore_put(b *testing.B) {
	eng, err := engine.Open(engine.Options{FS: filestest.NewMem(), Dir: "store", MemTableBytes: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	s, err := mvcc.Open(eng, mvcc.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var values [64][256]byte // half of each is random, so that they compress as JSON does
	for i := range values {
		for j := 0; j < 128; j += 8 {
			binary.LittleEndian.PutUint64(values[i][j:], r.Uint64())
		}
	}
	flushed, rows := eng.Stats().FlushedBytes, s.LogicalBytes()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; {
		w := s.Begin()
		for n := 0; n < 16 && i < b.N; n, i = n+1, i+1 {
			w.BeginCommand()
			w.Put(fmt.Appendf(nil, "/registry/pods/pod-%08d", r.IntN(1000)), values[i%64][:], 0)
			w.EndCommand()
		}
		if err := w.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := eng.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(s.LogicalBytes()-rows)/float64(b.N), "rows-B/op")
	b.ReportMetric(float64(eng.Stats().FlushedBytes-flushed)/float64(b.N), "flushed-B/op")
	if err := eng.Close(); err != nil {
		b.Fatal(err)
	}
}
