package server

import (
	"flag"
	"fmt"
	"math/rand"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/directory"
)

var (
	restoreEntries = flag.Int("restore-entries", 20_000, "entries of the log that BenchmarkRestore restores")
	restoreValue   = flag.Int("restore-value", 1024, "bytes of their values, half of them random")
	restoreKeys    = flag.Int("restore-keys", 1_000_000, "keys that they put")
)

// BenchmarkRestore makes the data directory of a new cluster from a continuous backup in a directory, all of whose entries are
// in the log:
//
//	go test ./internal/server -run xxx -bench Restore$ -benchtime 1x -restore-entries 1000000
func BenchmarkRestore(b *testing.B) {
	place, err := directory.Open(files.Disk, b.TempDir(), directory.Options{Now: time.Now,
		Unique: func() string { return fmt.Sprint(rand.Int()) }})
	if err != nil {
		b.Fatal(err)
	}
	filled := backuptest.Fill(b, place, backuptest.Load{Entries: *restoreEntries, Value: *restoreValue, Keys: *restoreKeys})
	catalog, err := fetch.Catalog(b.Context(), place, backuptest.Cluster)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		done, err := Restore(b.Context(), &RestoreRequest{Backup: &Backup{Store: place, Catalog: catalog, Place: "a directory"},
			DataDir: filepath.Join(b.TempDir(), "m1"), BumpRevision: 1_000_000_000})
		if err != nil {
			b.Fatal(err)
		}
		if done.Proved.Entries != *restoreEntries {
			b.Fatalf("%d entries", done.Proved.Entries)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(*restoreEntries)/float64(b.N), "restore-ns/entry")
	b.ReportMetric(float64(filled.Shipping.Nanoseconds())/float64(*restoreEntries), "ship-ns/entry")
}
