package backuptest

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Load is a log of puts.
type Load struct {
	Entries int
	Value   int // bytes of each value, half of them random
	Keys    int // of which each put takes one at random
}

// Filled is what filling a place took.
type Filled struct {
	Shipping time.Duration // sums, packing and putting, without applying
	Payload  int           // bytes of the commands
}

// loadAtOnce is how many entries of a Load are applied and shipped at once.
const loadAtOnce = 50

// Fill ships a load to a place, as one member would, with a base at the beginning alone: a restore of it replays all entries.
func Fill(tb testing.TB, store objects.Store, load Load) (filled Filled) {
	tb.Helper()
	eng, machine := openMachine(tb)
	defer func() {
		if err := eng.Close(); err != nil {
			tb.Error(err)
		}
	}()
	performs := perform.Performer{Store: store, FS: files.Disk, Dir: tb.TempDir() + "/checkpoint",
		Checkpoint: checkpointOf(eng, machine)}
	shipper := ship.New(ship.Config{Cluster: Cluster, Member: 3, BaseEvery: 1 << 60}, ship.Start{}, 1)
	shipped := func(batch *ship.Batch, now int64) {
		begun := time.Now()
		if batch != nil {
			shipper.Applied(now, batch)
		}
		shipper.Tick(now)
		settle(tb, shipper, &performs)
		filled.Shipping += time.Since(begun)
	}
	shipped(nil, 1)
	rng := rand.New(rand.NewSource(1))
	for at := 0; at < load.Entries; at += loadAtOnce {
		entries := make([]consensus.Entry, min(loadAtOnce, load.Entries-at))
		for i := range entries {
			value := make([]byte, load.Value)
			rng.Read(value[:len(value)/2])
			cmd := kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "/registry/pods/%07d", rng.Intn(load.Keys)), Value: value}}
			entries[i] = consensus.Entry{Index: consensus.Index(at + i + 1), Term: 1, Kind: consensus.EntryCommand,
				Payload: cmd.Append(nil)}
			filled.Payload += len(entries[i].Payload)
		}
		shipped(applied(tb, machine, entries), int64(at+2))
	}
	shipped(nil, 1<<40)
	if p := shipper.Progress(); int(p.Sealed.Index) != load.Entries {
		tb.Fatalf("%+v after %d entries", p, load.Entries)
	}
	return filled
}
