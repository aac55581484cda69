package wal_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

var benchDir = flag.String("dir", "", "directory on the disk to measure; a temporary one if empty")

func diskDir(b *testing.B) string {
	b.Helper()
	parent := *benchDir
	if parent == "" {
		parent = b.TempDir()
	}
	made, err := os.MkdirTemp(parent, "wal")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(made) })
	return made
}

// report adds the median and the tail: a mean says little about a disk.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}

// BenchmarkWAL_Append measures one Append with its sync, in a log whose files are new and in one whose files are overwritten.
func BenchmarkWAL_Append(b *testing.B) {
	for _, recycled := range []bool{false, true} {
		for _, entries := range []int{1, 64} {
			b.Run(fmt.Sprintf("recycled=%v/entries=%d", recycled, entries), func(b *testing.B) {
				benchmarkAppend(b, recycled, entries)
			})
		}
	}
}

func benchmarkAppend(b *testing.B, recycled bool, entries int) {
	// Reserved but young: 64 MiB are never filled here. Recycled: segments of 4 MiB, made before the clock starts.
	o := wal.Options{FS: files.Disk, Dir: diskDir(b), SegmentBytes: 64 << 20, PackFrom: wal.AsTheyAre, Keys: keysIf(false)}
	if recycled {
		o.SegmentBytes = 4 << 20
	}
	w := must(wal.Create(o, identity))
	defer func() { _ = w.Close() }()
	next := consensus.Index(1)
	batch := wal.Batch{Entries: make([]consensus.Entry, entries)}
	fill := func(payload []byte) {
		for i := range batch.Entries {
			batch.Entries[i] = consensus.Entry{Index: next, Term: 1, Kind: consensus.EntryCommand, Payload: payload}
			next++
		}
	}
	compact := func() {
		if recycled && w.Stats().Segments > 2 {
			if err := w.Compact(consensus.SnapshotMeta{Position: consensus.Position{Index: next - 1, Term: 1}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for w.Stats().Recycled < 3 && recycled {
		fill(make([]byte, (1<<20)/entries))
		if err := w.Append(batch); err != nil {
			b.Fatal(err)
		}
		compact()
	}
	payload := make([]byte, 256)
	took := make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	b.SetBytes(int64(entries * len(payload)))
	b.ResetTimer()
	for range b.N {
		fill(payload)
		start := time.Now()
		if err := w.Append(batch); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		compact()
	}
	report(b, took)
}

// BenchmarkWAL_Append_memory measures the CPU and the allocations of an Append without a disk.
func BenchmarkWAL_Append_memory(b *testing.B) {
	w := must(wal.Create(wal.Options{FS: filestest.NewMem(), Dir: "wal", SegmentBytes: 1 << 30, PackFrom: wal.AsTheyAre}, identity))
	batch := wal.Batch{Entries: make([]consensus.Entry, 64)}
	for i := range batch.Entries {
		batch.Entries[i] = consensus.Entry{Index: consensus.Index(i + 1), Term: 1, Payload: make([]byte, 256),
			Kind: consensus.EntryCommand}
	}
	b.ReportAllocs()
	for range b.N {
		if err := w.Append(batch); err != nil {
			b.Fatal(err)
		}
		if err := w.Append(wal.Batch{Reset: &consensus.SnapshotMeta{}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDisk measures the disk itself: 4 KiB and a sync, by the state of the file. It shows why segments are recycled, and
// zeros written ahead.
func BenchmarkDisk(b *testing.B) {
	const reserve = 64 << 20
	for _, kind := range []string{"growing", "reserved", "overwritten"} {
		b.Run(kind, func(b *testing.B) {
			file := must(files.Disk.OpenReadWrite(files.Disk.PathJoin(diskDir(b), "file")))
			defer func() { _ = file.Close() }()
			switch kind {
			case "reserved":
				if err := file.Preallocate(0, reserve); err != nil {
					b.Fatal(err)
				}
			case "overwritten":
				must(file.WriteAt(make([]byte, reserve), 0))
				if err := file.Sync(); err != nil {
					b.Fatal(err)
				}
			}
			block := make([]byte, 4<<10)
			took := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for i := range b.N {
				start := time.Now()
				must(file.WriteAt(block, int64(i*len(block))%reserve))
				if err := file.SyncData(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			report(b, took)
		})
	}
}

// BenchmarkOpen reads 100,000 entries of 256 B.
func BenchmarkOpen(b *testing.B) {
	o := wal.Options{FS: files.Disk, Dir: diskDir(b), NoSync: true, PackFrom: wal.AsTheyAre, Keys: keysIf(false)}
	w := must(wal.Create(o, identity))
	var batch wal.Batch
	for i := range 100_000 {
		batch.Entries = append(batch.Entries, consensus.Entry{Index: consensus.Index(i + 1), Term: 1,
			Kind: consensus.EntryCommand, Payload: make([]byte, 256)})
		if len(batch.Entries) == 100 {
			if err := w.Append(batch); err != nil {
				b.Fatal(err)
			}
			batch.Entries = batch.Entries[:0]
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w, got, err := wal.Open(o)
		if err != nil || len(got.Entries) != 100_000 {
			b.Fatalf("%d entries, %v", len(got.Entries), err)
		}
		_ = w.Close()
	}
}
