package replay_test

import (
	"flag"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/directory"
)

var (
	benchEntries = flag.Int("entries", 50_000, "entries that BenchmarkRun ships and restores")
	benchValue   = flag.Int("value", 256, "bytes of their values, half of them random")
	benchKeys    = flag.Int("keys", 100_000, "keys that they put")
)

// BenchmarkRun restores the latest state of a member of which all entries are in the log, from a directory:
//
//	go test ./internal/backup/replay -run xxx -bench Run -benchtime 1x -entries 1000000 -value 1024
//
// ship-ns/entry is what shipping takes (sums, packing, putting), without applying.
func BenchmarkRun(b *testing.B) {
	place, err := directory.Open(files.Disk, b.TempDir(), directory.Options{Now: time.Now,
		Unique: func() string { return fmt.Sprint(rand.Int()) }})
	if err != nil {
		b.Fatal(err)
	}
	filled := backuptest.Fill(b, place, backuptest.Load{Entries: *benchEntries, Value: *benchValue, Keys: *benchKeys})
	catalog, err := fetch.Catalog(b.Context(), place, backuptest.Cluster)
	if err != nil {
		b.Fatal(err)
	}
	bytes := int64(0)
	for i := range catalog.Segments {
		bytes += catalog.Segments[i].Size
	}
	for b.Loop() {
		s, err := replay.Run(b.Context(), replay.Options{Store: place, FS: files.Disk, Dir: b.TempDir() + "/scratch",
			OpenEngine: openPebble}, catalog, backup.Target{})
		if err != nil {
			b.Fatal(err)
		}
		if s.Entries != *benchEntries {
			b.Fatalf("%d entries", s.Entries)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(filled.Shipping.Nanoseconds())/float64(*benchEntries), "ship-ns/entry")
	b.ReportMetric(float64(bytes)/float64(filled.Payload), "shipped/payload")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(*benchEntries)/float64(b.N), "restore-ns/entry")
}
