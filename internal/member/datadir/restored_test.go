package datadir_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/restore"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// valueBytes is the size of values that lie apart from their keys, in files of the base that no compaction replaces.
const valueBytes = 64 << 10

func lsm(fs env.FS, dir string) (engine.Engine, error) {
	return engine.Open(engine.Options{FS: fs, Dir: dir, CacheBytes: 1 << 20, MemTableBytes: 4 << 20})
}

// restoreBackup restores the newest state of a backup into a data directory, as `quorate restore` does.
func restoreBackup(t *testing.T, place *objectstest.Place, o datadir.Options) error {
	t.Helper()
	catalog, err := fetch.Catalog(t.Context(), place, backuptest.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	return datadir.RestoreStore(o, func(dir string) (made *datadir.Restored, err error) {
		s, err := replay.Run(t.Context(), replay.Options{Store: place, FS: o.FS, Dir: dir, Durable: true, Parallel: 1,
			OpenEngine: func(dir string) (engine.Engine, error) { return lsm(o.FS, dir) }}, catalog, backup.Target{})
		if err != nil {
			return nil, err
		}
		made, _, err = restore.Refound(s.Machine, &s.At, &restore.Request{Name: "m1", Self: 1,
			Members: []consensus.Member{{ID: 1}}})
		return made, errors.Join(err, s.Close())
	})
}

// contents founds a cluster on the store of a restored directory, and returns how many keys it has.
func contents(t *testing.T, fs env.FS, dir string) (keys int, err error) {
	t.Helper()
	names, err := fs.List(fs.PathJoin(dir, "stores"))
	if err != nil || len(names) != 1 {
		return 0, fmt.Errorf("stores %v: %w", names, err)
	}
	store := fs.PathJoin(dir, "stores", names[0])
	eng, err := lsm(fs, store)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	base := consensus.Founding(consensus.Config{Voters: []consensus.MemberID{1}})
	base.Position = consensus.Position{Index: 1, Term: 1}
	if err := apply.Found(eng, 88, level.First, &base); err != nil {
		return 0, err
	}
	machine, err := apply.Open(eng, apply.Options{})
	if err != nil {
		return 0, err
	}
	defer machine.Detach()
	found, _, err := machine.Store().Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}})
	for _, pair := range found.KVs {
		if len(pair.Value) == valueBytes {
			keys++
		}
	}
	return keys, err
}

// Ensure that after a power loss at any operation of a restore from a continuous backup there is no directory, one that is refused,
// or a whole one with all contents, and that there is a whole one after the last.
func TestRestoreStore_powerLossAtEveryOperation(t *testing.T) {
	place := objectstest.NewPlace(3, time.Now)
	const keys = 4
	var commands []kv.Command
	for i := range keys {
		commands = append(commands, kv.Command{Put: &kv.PutOp{Key: []byte{'k', byte(i)}, Value: bytes.Repeat([]byte{'v'}, valueBytes)}})
	}
	backuptest.Ship(t, place, commands)
	disk := filestest.NewCrashableMem()
	var lost []*filestest.MemFS
	rng := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex // the engine removes files in a goroutine of its own
	lose := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, percent := range []int{0, 50, 100} {
			lost = append(lost, disk.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
		}
	}
	fs := filestest.Wrap(disk, filestest.InjectorFunc(func(op filestest.Op) error {
		if op.Kind.ReadOrWrite() == filestest.OpIsWrite {
			lose()
		}
		return nil
	}))
	if err := restoreBackup(t, place, datatest.OptionsIn(fs, "/var/quorate/member")); err != nil {
		t.Fatal(err)
	}
	lose()
	whole := 0
	for i, left := range lost {
		o := datatest.OptionsIn(left, "/var/quorate/member")
		switch err := datadir.FinishRestore(o); {
		case errors.Is(err, datadir.ErrPartial):
			continue
		case err != nil:
			t.Fatalf("power loss %d of %d: %v", i, len(lost), err)
		}
		if _, err := left.Stat(o.Dir); err != nil {
			continue
		}
		whole++
		restored, err := datadir.ReadRestored(o)
		if err != nil || restored == nil || restored.Self != 1 {
			t.Fatalf("power loss %d of %d: %+v, %v", i, len(lost), restored, err)
		}
		if got, err := contents(t, left, o.Dir); err != nil || got != keys {
			t.Fatalf("power loss %d of %d: %d keys, %v", i, len(lost), got, err)
		}
	}
	if whole < 3 || whole == len(lost) {
		t.Errorf("%d of %d are whole", whole, len(lost))
	}
}

// Ensure that a directory that was restored is told apart from an empty one where the member was reset meanwhile: the cluster has a
// newer state, and nothing is put over the older one.
func TestCreate_restoredForAnother(t *testing.T) {
	place := objectstest.NewPlace(3, time.Now)
	backuptest.Ship(t, place, []kv.Command{{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v")}}})
	o := datatest.OptionsIn(filestest.NewMem(), "/var/quorate/member")
	if err := restoreBackup(t, place, o); err != nil {
		t.Fatal(err)
	}
	restored, err := datadir.ReadRestored(o)
	if err != nil {
		t.Fatal(err)
	}
	err = datadir.Create(o, wal.Identity{Cluster: restored.Cluster, Member: 7, Storage: wal.StorageID{1}},
		consensus.Config{Voters: []consensus.MemberID{7}, Members: []consensus.Member{{ID: 7}}})
	if err == nil || !strings.Contains(err.Error(), "with an empty directory and its flags") {
		t.Errorf("it says %v", err)
	}
	if again, err := datadir.ReadRestored(o); err != nil || again == nil || again.Self != restored.Self {
		t.Errorf("what was restored is %+v now, %v", again, err)
	}
}
