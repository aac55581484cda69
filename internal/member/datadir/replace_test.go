package datadir_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// leaderOf50 is another member that has applied 50 entries of term 2.
func leaderOf50(t *testing.T) *datadir.Data {
	t.Helper()
	leader := datatest.Create(t, datatest.Options(), 2)
	t.Cleanup(func() { datatest.Close(t, leader) })
	if _, err := leader.Machine.Apply(datatest.Puts(1, 50, 2)); err != nil {
		t.Fatal(err)
	}
	return leader
}

// behind is data on fs that has applied 10 of the 20 entries in its log.
func behind(t *testing.T, fs env.FS) *datadir.Data {
	t.Helper()
	data := datatest.Create(t, datatest.OptionsIn(fs, "data"), 1)
	log := datatest.Puts(1, 20, 2)
	if err := data.WAL.Append(wal.Batch{Hard: &consensus.HardState{Term: 2, Commit: 10}, Entries: log}); err != nil {
		t.Fatal(err)
	}
	if _, err := data.Machine.Apply(log[:10]); err != nil {
		t.Fatal(err)
	}
	if err := data.Engine.Flush(); err != nil {
		t.Fatal(err)
	}
	return data
}

// install does all that a member does with a received snapshot, including the reset of the log.
func install(data *datadir.Data, meta consensus.SnapshotMeta, dir string) error {
	if err := data.Replace(meta, dir); err != nil {
		return err
	}
	batches := []wal.Batch{{Reset: &meta}}
	if err := data.WAL.Append(batches...); err != nil {
		return err
	}
	return data.Persisted(batches)
}

// Ensure that after a power loss at any operation of an installation the member starts, with the old store or the new one.
func TestData_Replace_powerLossAtEveryOperation(t *testing.T) {
	leader := leaderOf50(t)
	meta := leader.Machine.SnapshotMeta()
	disk := filestest.NewCrashableMem()
	var lost []*filestest.MemFS
	armed := false
	rng := rand.New(rand.NewPCG(1, 2))
	fs := filestest.Wrap(disk, filestest.InjectorFunc(func(op filestest.Op) error {
		if armed && op.Kind.ReadOrWrite() == filestest.OpIsWrite {
			for _, percent := range []int{0, 50, 100} {
				lost = append(lost, disk.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
			}
		}
		return nil
	}))
	data := behind(t, fs)
	dir := datatest.Receive(t, data.Options, leader)
	armed = true
	if err := install(data, meta, dir); err != nil {
		t.Fatal(err)
	}
	armed = false
	counts := map[consensus.Index]int{}
	for i, left := range lost {
		after, err := datadir.Open(datatest.OptionsIn(left, "data"))
		if err != nil {
			t.Fatalf("power loss %d: %v", i, err)
		}
		applied := after.Machine.Applied()
		counts[applied.Index]++
		if applied != meta.Position && applied.Index != 10 {
			t.Errorf("power loss %d: %v is applied", i, applied)
		}
		if owner := after.Machine.Owner(); owner != after.Identity {
			t.Errorf("power loss %d: the store is that of %+v", i, owner)
		}
		datatest.Close(t, after)
	}
	datatest.Close(t, data)
	if len(counts) != 2 {
		t.Errorf("power losses left %v, want both outcomes", counts)
	}
}

// Ensure that whichever operation fails, the old store serves on, nothing panics, and the next start is sound.
func TestData_Replace_everyOperationFails(t *testing.T) {
	leader := leaderOf50(t)
	meta := leader.Machine.SnapshotMeta()
	for at := 0; ; at++ {
		disk, left := filestest.NewMem(), -1
		fs := filestest.Wrap(disk, filestest.InjectorFunc(func(op filestest.Op) error {
			if left > 0 {
				if left--; left == 0 {
					return syscall.EIO
				}
			}
			return nil
		}))
		data := behind(t, fs)
		dir := datatest.Receive(t, data.Options, leader)
		left = at + 1
		err := data.Replace(meta, dir)
		done := left > 0
		left = -1
		if err != nil {
			if _, err := data.Machine.Apply(datatest.Puts(11, 1, 2)); err != nil || data.Machine.Applied().Index != 11 {
				t.Fatalf("operation %d: the old store does not go on: %v", at, err)
			}
		}
		if _, err := data.Machine.Store().Get([]byte("k")); err != nil {
			t.Errorf("operation %d: read: %v", at, err)
		}
		datatest.Close(t, data)
		again, openErr := datadir.Open(datatest.OptionsIn(disk, "data"))
		if openErr != nil {
			t.Fatalf("operation %d (%v): the next start: %v", at, err, openErr)
		}
		if got := again.Machine.Applied().Index; err == nil && got != 50 || err != nil && !errors.Is(err, datadir.ErrSwitch) && got != 10 {
			t.Errorf("operation %d (%v): %d is applied after the next start", at, err, got)
		}
		datatest.Close(t, again)
		if done {
			return
		}
	}
}

// The store of a real engine on disk, as in a process, with a file system whose renames fail.
func TestData_Replace_realStore(t *testing.T) {
	leader := leaderOf50(t)
	var bad atomic.Bool // the store's own goroutines read it, too
	fs := filestest.Wrap(filestest.NewMem(), filestest.InjectorFunc(func(op filestest.Op) error {
		if bad.Load() && op.Kind == filestest.OpRename {
			return syscall.EIO
		}
		return nil
	}))
	options := datatest.OptionsIn(fs, "data")
	options.OpenEngine = func(dir string) (engine.Engine, error) { return engine.Open(engine.Options{FS: fs, Dir: dir}) }
	data := datatest.Create(t, options, 1)
	dir := datatest.Receive(t, datatest.OptionsIn(fs, "data"), leader)
	bad.Store(true)
	if err := data.Replace(leader.Machine.SnapshotMeta(), dir); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want the error of the disk", err)
	}
	if _, err := data.Machine.Store().Get([]byte("x")); err != nil {
		t.Errorf("read: %v", err)
	}
	datatest.Close(t, data)
	if _, err := data.Machine.Store().Get([]byte("y")); err != nil && !errors.Is(err, engine.ErrClosed) {
		t.Errorf("read after the end: %v", err)
	}
	if _, _, err := data.Engine.Get([]byte("y")); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("read of the store after the end: got %v, want ErrClosed", err)
	}
}

// Once the log has taken over an installed snapshot, Open refuses a log of the same life from before the installation:
// otherwise writes that were acknowledged since could be lost unnoticed.
func TestOpen_olderLogAfterInstallation(t *testing.T) {
	leader := leaderOf50(t)
	fs := filestest.NewMem()
	data := behind(t, fs)
	clone(t, fs, "data/wal", "old")
	if err := install(data, leader.Machine.SnapshotMeta(), datatest.Receive(t, data.Options, leader)); err != nil {
		t.Fatal(err)
	}
	if err := data.WAL.Append(wal.Batch{Hard: &consensus.HardState{Term: 7, Vote: 1}, Entries: datatest.Puts(51, 10, 7)}); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data)
	clone(t, fs, "data/wal", "new")
	clone(t, fs, "old", "data/wal")
	again, err := datadir.Open(datatest.OptionsIn(fs, "data"))
	if err == nil {
		datatest.Close(t, again)
	}
	if err == nil || !strings.Contains(err.Error(), "lost its end") {
		t.Errorf("got %v, want a refusal of the older log", err)
	}
	clone(t, fs, "new", "data/wal")
	again = datatest.Open(t, datatest.OptionsIn(fs, "data"))
	if again.Restored.Hard.Term != 7 || len(again.Restored.Entries) != 10 {
		t.Errorf("term %d and %d entries, want what was acknowledged", again.Restored.Hard.Term, len(again.Restored.Entries))
	}
	datatest.Close(t, again)
}

// A snapshot that this version cannot read is refused where it was received; a member of the older version goes on.
func TestData_Check_newerFormat(t *testing.T) {
	leader := leaderOf50(t)
	fs := filestest.NewMem()
	data := behind(t, fs)
	dir := datatest.Receive(t, data.Options, leader)
	meta := leader.Machine.SnapshotMeta()
	if err := data.Check(meta, dir); err != nil {
		t.Fatal(err)
	}
	data.Options.OpenView = func(string) (engine.Engine, error) { return nil, engine.ErrNewer }
	if err := data.Check(meta, dir); !errors.Is(err, engine.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	data.Options.OpenView = nil
	foreign := datatest.OptionsIn(filestest.NewMem(), "other")
	fillData(t, foreign, wal.Identity{Cluster: 10, Member: 2, Storage: wal.StorageID{2}})
	other := datatest.Open(t, foreign)
	defer datatest.Close(t, other)
	if err := data.Check(other.Machine.SnapshotMeta(), datatest.Receive(t, data.Options, other)); err == nil ||
		!strings.Contains(err.Error(), "cluster a") {
		t.Errorf("got %v, want a refusal of another cluster's", err)
	}
	if left, err := fs.List("data/snapshots"); err != nil || len(left) != 1 {
		t.Errorf("%q are left (%v), want the received one", left, err)
	}
	datatest.Close(t, data)
}
