package backuptest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Cluster is the id of the cluster that is shipped.
const Cluster consensus.ClusterID = 0xabcdef

// Begun is the time of the first entry, in milliseconds since 1970. Each entry takes a second, and is a segment.
const Begun = 1_790_000_000_000

// Ship applies commands to the state machine of a new cluster, as one member would, ships its backup to a place, with a base at
// the beginning, one in the middle and one at the end, and returns the state after each entry.
func Ship(t testing.TB, store objects.Store, commands []kv.Command) []backup.Head {
	t.Helper()
	return ShipLocked(t, store, nil, commands)
}

// ShipLocked is Ship with a lock that encrypts the backup.
func ShipLocked(t testing.TB, store objects.Store, lock *backup.Lock, commands []kv.Command) []backup.Head {
	t.Helper()
	eng, m := openMachine(t)
	defer func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}()
	performs := perform.Performer{Store: store, FS: files.Disk, Dir: filepath.Join(t.TempDir(), "checkpoint"),
		Checkpoint: checkpointOf(eng, m), Lock: lock}
	now := int64(Begun)
	s := ship.New(ship.Config{Cluster: Cluster, Member: 3, Build: "1.1.0", SealAfter: 1, BaseEvery: int64(len(commands)) * 500,
		Lock: lock},
		ship.Start{}, now)
	settle(t, s, &performs)
	var heads []backup.Head
	for i := range commands {
		e := []consensus.Entry{{Index: consensus.Index(i + 1), Term: 1, Kind: consensus.EntryCommand,
			Payload: commands[i].Append(nil)}}
		s.Applied(now, applied(t, m, e))
		heads = append(heads, backup.Head{Point: backup.Point{Index: e[0].Index, Sum: m.Chain().Sum},
			Moment: backup.Moment{Revision: m.Store().Revision(), Time: now}})
		now += 1000
		s.Tick(now)
		settle(t, s, &performs)
	}
	if p, want := s.Progress().Restorable, heads[len(heads)-1]; p.Index != want.Index || p.Moment != want.Moment {
		t.Fatalf("got %+v, want %+v", p, want)
	}
	return heads
}

// openMachine opens the state machine of a new cluster on a new store.
func openMachine(t testing.TB) (engine.Engine, *apply.Machine) {
	t.Helper()
	eng, err := engine.Open(engine.Options{FS: files.Disk, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Bootstrap(eng, Cluster, consensus.Config{Voters: []consensus.MemberID{3}}); err != nil {
		t.Fatal(err)
	}
	m, err := apply.Open(eng, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return eng, m
}

// checkpointOf makes checkpoints while the machine applies nothing.
func checkpointOf(eng engine.Engine, m *apply.Machine) func(context.Context, string, func(*apply.Machine) error) error {
	return func(_ context.Context, dir string, f func(*apply.Machine) error) error {
		if err := eng.Checkpoint(dir); err != nil {
			return err
		}
		return f(m)
	}
}

// applied applies entries, and returns them as a batch.
func applied(t testing.TB, m *apply.Machine, entries []consensus.Entry) *ship.Batch {
	t.Helper()
	revision := m.Store().Revision()
	results, err := m.Apply(entries)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := perform.Batch(m, revision, entries, results)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// settle does all operations of a shipper.
func settle(t testing.TB, s *ship.Shipper, performs *perform.Performer) {
	t.Helper()
	for ops := s.Take(); len(ops) > 0; ops = s.Take() {
		for i := range ops {
			if o := performs.Do(t.Context(), &ops[i]); o.Result != ship.OK {
				t.Fatal(o.Why)
			} else if ops[i].Kind != ship.Discard {
				s.Done(ops[i].ID, o)
			}
		}
	}
}
