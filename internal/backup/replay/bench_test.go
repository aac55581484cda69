package replay_test

import (
	"flag"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/directory"
)

var (
	benchEntries = flag.Int("entries", 50_000, "entries that BenchmarkRun ships and restores")
	benchValue   = flag.Int("value", 256, "bytes of their values, half of them random")
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
	store, machine := bootstrapped(b, openPebble)
	performs := perform.Performer{Store: place, FS: files.Disk, Dir: b.TempDir() + "/checkpoint",
		Checkpoint: checkpointOf(store, machine)}
	shipper := ship.New(ship.Config{Cluster: cluster, Member: 3}, ship.Start{}, 1)
	shipping, payload := time.Duration(0), 0
	shipped := func(batch *ship.Batch, now int64) {
		begun := time.Now()
		if batch != nil {
			shipper.Applied(now, batch)
		}
		shipper.Tick(now)
		for ops := shipper.Take(); len(ops) > 0; ops = shipper.Take() {
			for i := range ops {
				if o := performs.Do(b.Context(), &ops[i]); o.Result != ship.OK {
					b.Fatal(o.Why)
				} else if ops[i].Kind != ship.Discard {
					shipper.Done(ops[i].ID, o)
				}
			}
		}
		shipping += time.Since(begun)
	}
	shipped(nil, 1)
	const atOnce = 50
	rng := rand.New(rand.NewSource(1))
	for at := 0; at < *benchEntries; at += atOnce {
		entries := make([]consensus.Entry, atOnce)
		for i := range entries {
			value := make([]byte, *benchValue)
			rng.Read(value[:len(value)/2])
			cmd := kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "/registry/pods/%06d", rng.Intn(100_000)), Value: value}}
			entries[i] = consensus.Entry{Index: consensus.Index(at + i + 1), Term: 1, Kind: consensus.EntryCommand,
				Payload: cmd.Append(nil)}
			payload += len(entries[i].Payload)
		}
		revision := machine.Store().Revision()
		results, err := machine.Apply(entries)
		if err != nil {
			b.Fatal(err)
		}
		batch, err := perform.Batch(machine, revision, entries, results)
		if err != nil {
			b.Fatal(err)
		}
		shipped(batch, int64(at+2))
	}
	shipped(nil, 1<<40)
	catalog, err := fetch.Catalog(b.Context(), place, cluster)
	if err != nil {
		b.Fatal(err)
	}
	bytes := int64(0)
	for i := range catalog.Segments {
		bytes += catalog.Segments[i].Size
	}
	catalog.Bases = catalog.Bases[:1] // that of the beginning
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
	b.ReportMetric(float64(shipping.Nanoseconds())/float64(*benchEntries), "ship-ns/entry")
	b.ReportMetric(float64(bytes)/float64(payload), "shipped/payload")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(*benchEntries)/float64(b.N), "restore-ns/entry")
}
