package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// randomEntries have payloads of which percent percent are random.
func randomEntries(first consensus.Index, n, payloadBytes, percent int) []consensus.Entry {
	all, rng := entries(first, n, payloadBytes), rand.New(rand.NewPCG(uint64(first), 1))
	for i := range all {
		for j := range payloadBytes * percent / 100 {
			all[i].Payload[j] = byte(rng.Uint32())
		}
	}
	return all
}

// Ensure that only records which become smaller are packed, also after a restart, and that all are read.
func TestWAL_packs(t *testing.T) {
	fs := filestest.NewMem()
	o := wal.Options{FS: fs, Dir: dir}
	w := must(wal.Create(o, identity))
	var m model
	appended := func(entries []consensus.Entry) (packed uint64, bytes uint64) {
		t.Helper()
		before, b := w.Stats(), wal.Batch{Entries: entries}
		m.append(&b)
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
		after := w.Stats()
		return after.Packed - before.Packed, after.RecordBytes - before.RecordBytes
	}
	for what, row := range map[string]struct {
		entries []consensus.Entry
		packed  uint64
	}{
		"zeros": {entries(1, 8, 1000), 1}, "half random": {randomEntries(1, 8, 1000, 50), 1}, "random": {randomEntries(1, 8, 1000, 100), 0},
		"a little less than random": {randomEntries(1, 1, 1000, 95), 0}, "small": {entries(1, 1, 300), 0},
		"too large to read at once": {entries(1, 1, wal.MaxPackedBytes), 0},
	} {
		for i := range row.entries {
			row.entries[i].Index = m.last() + 1 + consensus.Index(i)
		}
		for range 2 * 16 { // after some that did not become smaller, others are not tried
			if packed, _ := appended(entries(m.last()+1, 1, 2000)); packed == 1 {
				break
			}
		}
		for i := range row.entries {
			row.entries[i].Index = m.last() + 1 + consensus.Index(i)
		}
		if packed, bytes := appended(row.entries); packed != row.packed {
			t.Errorf("%s: %d packed, %d bytes", what, packed, bytes)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w, got, err := wal.Open(o)
	if err != nil || m.differs(&got) != "" {
		t.Fatalf("%v: %s", err, m.differs(&got))
	}
	if packed, bytes := appended(entries(m.last()+1, 8, 1000)); packed != 1 || bytes > 1000 {
		t.Errorf("after a restart: %d packed, %d bytes", packed, bytes)
	}
	var listing strings.Builder
	if err := wal.Dump(&listing, fs, dir, keysIf(false)); err != nil || !strings.Contains(listing.String(), ", packed, 8") ||
		strings.Count(listing.String(), "   entry ") != len(m.Entries) {
		t.Errorf("%v: listing of %d entries:\n%.1000s", err, strings.Count(listing.String(), "   entry "), listing.String())
	}
}

// Ensure that malformed packed items under a valid checksum are damage, and that a length which they claim is not trusted.
func TestOpen_packedNonsense(t *testing.T) {
	items := wal.Items(wal.Batch{Entries: entries(1, 20, 1000)})
	block := s2.Encode(nil, items)
	large := s2.Encode(nil, make([]byte, wal.MaxPackedBytes+1))
	for what, block := range map[string][]byte{
		"nothing":           nil,
		"no items":          s2.Encode(nil, nil),
		"a length only":     block[:2],
		"an end is missing": block[:len(block)-1],
		"more than one":     append(bytes.Clone(block), block...),
		"half an item":      s2.Encode(nil, items[:len(items)-1]),
		"packed twice":      s2.Encode(nil, wal.Packed(block)),
		"a lie":             append(binary.AppendUvarint(nil, 1<<31), block[2:]...),
		"too much":          large,
	} {
		log := contents{"0000000000000001.wal": wal.Sealed(identity, wal.Carried(), wal.Packed(block))}
		fs := log.with("", nil)
		_, _, err := wal.Open(options(fs, 4<<10))
		var corrupt *wal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Offset == 0 || corrupt.File == "" {
			t.Errorf("%s: %v", what, err)
		}
		checkUntouched(t, fs, "0000000000000001.wal", log["0000000000000001.wal"])
		if err := wal.Dump(io.Discard, fs, dir, keysIf(false)); !errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("%s: dump: %v", what, err)
		}
	}
	log := contents{"0000000000000001.wal": wal.Sealed(identity, wal.Carried(), wal.Packed(large))}
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _, _ = wal.Inspect(options(log.with("", nil), 4<<10))
		}
	}).AllocedBytesPerOp()
	if allocated > wal.MaxPackedBytes/2 {
		t.Errorf("%d bytes for a record that is refused", allocated)
	}
}

// Ensure that packing allocates its buffer once, not for each record.
func TestWAL_Pack_allocations(t *testing.T) {
	for _, percent := range []int{0, 100} {
		plain, packing := wal.Packing(randomEntries(1, 64, 256, percent), false), wal.Packing(randomEntries(1, 64, 256, percent), true)
		if got, want := testing.AllocsPerRun(100, func() { packing() }), testing.AllocsPerRun(100, func() { plain() }); got > want {
			t.Errorf("%d %% random: %v allocations, as they are %v", percent, got, want)
		}
	}
}

// BenchmarkWAL_pack measures the part of Append that packs a record of 64 entries, whose payloads are random in some part.
func BenchmarkWAL_pack(b *testing.B) {
	for _, size := range []int{256, 10 << 10} {
		for _, percent := range []int{0, 50, 100} {
			for _, packed := range []bool{false, true} {
				b.Run(fmt.Sprintf("bytes=%d/random=%d%%/packed=%v", size, percent, packed), func(b *testing.B) {
					pack := wal.Packing(randomEntries(1, 64, size, percent), packed)
					b.ReportAllocs()
					written, tried := 0, 0
					for b.Loop() {
						written, tried = written+pack(), tried+1
					}
					b.ReportMetric(float64(written)/float64(tried)/64, "B/entry")
				})
			}
		}
	}
}
