package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

var oldFiles = map[string]string{"000009.sst": "old table", "MANIFEST-7": "old manifest"}

var mark = consensus.Mark{Index: 4711, Term: 3}

// preparedDisk has an old store and a received snapshot, both durable.
func preparedDisk(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := newDisk(t)
	store := path(fs, snapshot.StoreDir)
	check(t, copyingEngine{fs: fs, files: oldFiles}.Checkpoint(store))
	sync(t, fs, store)
	sync(t, fs, dataDir)
	check(t, snapshot.Receive(fs, bytes.NewReader(newStream(t)), path(fs, snapshot.WorkDir, "incoming-1")))
	return fs
}

// holds reports whether dir has exactly the files.
func holds(fs env.FS, dir string, files map[string]string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	if len(names) != len(files) {
		return fmt.Errorf("%s holds %q, want %q", dir, names, sortedNames(files))
	}
	for name, want := range files {
		f, err := fs.Open(fs.PathJoin(dir, name))
		if err != nil {
			return err
		}
		var got bytes.Buffer
		_, err = got.ReadFrom(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if got.String() != want {
			return fmt.Errorf("%s: got %q, want %q", name, got.String(), want)
		}
	}
	return nil
}

// crashes runs work on disk and yields what a crash before each of its operations could leave.
func crashes(disk *vfs.MemFS, percents []int, rng *rand.Rand, work func(env.FS) error,
	yield func(step int, after *vfs.MemFS)) error {
	step := 0
	err := work(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead && op.Kind != errorfs.OpOpenDir {
			return nil
		}
		for _, percent := range percents {
			yield(step, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
		}
		step++
		return nil
	})))
	for _, percent := range percents {
		yield(step, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
	}
	return err
}

// wantOneStore checks law 2 after Recover: one whole store and no rest. It reports whether that is the new one.
func wantOneStore(t *testing.T, fs env.FS, what string) (installed bool) {
	t.Helper()
	store := path(fs, snapshot.StoreDir)
	errOld, errNew := holds(fs, store, oldFiles), holds(fs, store, newFiles)
	if errOld != nil && errNew != nil {
		t.Fatalf("%s: neither store is whole: %v; %v", what, errOld, errNew)
	}
	installed = errNew == nil
	if installed != snapshot.Installed(fs, dataDir, mark) {
		t.Fatalf("%s: the new store is in place: %v, Installed says the opposite", what, installed)
	}
	if snapshot.Installed(fs, dataDir, consensus.Mark{Index: mark.Index + 1, Term: mark.Term}) {
		t.Fatalf("%s: Installed believes in another mark", what)
	}
	if installed {
		wantNames(t, fs, dataDir, "store", "store.installed")
	} else {
		wantNames(t, fs, dataDir, "store")
	}
	return installed
}

func newRNG(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var percents = []int{0, 30, 50, 70, 100}

func TestInstallAt_crashAtEveryOperation(t *testing.T) {
	rng := newRNG(t)
	counts := map[bool]int{}
	for range 10 {
		committed := false
		disk := preparedDisk(t)
		install := func(fs env.FS) error {
			return snapshot.InstallAt(fs, dataDir, path(fs, snapshot.WorkDir, "incoming-1"), mark)
		}
		check(t, crashes(disk, percents, rng, install, func(step int, after *vfs.MemFS) {
			// The machine may crash again at each operation of the recovery, and the next recovery must do.
			recovering := func(fs env.FS) error { return snapshot.Recover(fs, dataDir) }
			first := after.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
			check(t, recovering(first))
			installed := wantOneStore(t, first, fmt.Sprintf("crash at %d", step))
			counts[installed]++
			committed = committed || installed
			check(t, crashes(after, []int{0, 50, 100}, rng, recovering, func(again int, twice *vfs.MemFS) {
				what := fmt.Sprintf("crash at %d, then at %d of the recovery", step, again)
				if err := recovering(twice); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				// Whether it was committed cannot change any more once a recovery has looked at it.
				if got := wantOneStore(t, twice, what); got != installed {
					t.Fatalf("%s: installed %v, was %v", what, got, installed)
				}
			}))
		}))
		if !committed {
			t.Fatal("no crash came after the commit")
		}
		// Without a crash the new store is there at once, and a power loss afterwards does not take it away.
		check(t, holds(disk, path(disk, snapshot.StoreDir), newFiles))
		lost := disk.CrashClone(vfs.CrashCloneCfg{})
		check(t, snapshot.Recover(lost, dataDir))
		if !wantOneStore(t, lost, "after the end") {
			t.Fatal("an installation that returned nil was lost")
		}
	}
	t.Logf("%d crashes left the old store, %d the new one", counts[false], counts[true])
	if counts[false] == 0 || counts[true] == 0 {
		t.Error("only one outcome was seen")
	}
}

func TestInstallAt_overInstalled(t *testing.T) {
	// A second installation meets the record of the first, and a crash in it must not revive anything.
	rng := newRNG(t)
	disk := preparedDisk(t)
	first := consensus.Mark{Index: 1, Term: 1}
	check(t, snapshot.InstallAt(disk, dataDir, path(disk, snapshot.WorkDir, "incoming-1"), first))
	check(t, snapshot.Receive(disk, bytes.NewReader(newStream(t)), path(disk, snapshot.WorkDir, "incoming-2")))
	install := func(fs env.FS) error {
		return snapshot.InstallAt(fs, dataDir, path(fs, snapshot.WorkDir, "incoming-2"), mark)
	}
	check(t, crashes(disk, percents, rng, install, func(step int, after *vfs.MemFS) {
		check(t, snapshot.Recover(after, dataDir))
		check(t, holds(after, path(after, snapshot.StoreDir), newFiles))
		if snapshot.Installed(after, dataDir, first) == snapshot.Installed(after, dataDir, mark) {
			t.Fatalf("crash at %d: exactly one of both marks must be the last", step)
		}
	}))
}

func TestInstallAt_withoutStore(t *testing.T) {
	disk := newDisk(t)
	check(t, snapshot.Receive(disk, bytes.NewReader(newStream(t)), path(disk, snapshot.WorkDir, "in")))
	check(t, snapshot.InstallAt(disk, dataDir, path(disk, snapshot.WorkDir, "in"), mark))
	check(t, holds(disk, path(disk, snapshot.StoreDir), newFiles))
	if !snapshot.Installed(disk, dataDir, mark) {
		t.Error("the installation is not remembered")
	}
}

func TestInstallAt_notASnapshot(t *testing.T) {
	disk := preparedDisk(t)
	bogus := path(disk, snapshot.WorkDir, "bogus")
	check(t, disk.MkdirAll(bogus, 0o755))
	if err := snapshot.InstallAt(disk, dataDir, bogus, mark); err == nil {
		t.Error("an empty directory was installed")
	}
	check(t, snapshot.Recover(disk, dataDir))
	check(t, holds(disk, path(disk, snapshot.StoreDir), oldFiles))
}

func TestInstallAt_failingDisk(t *testing.T) {
	broken := errors.New("input/output error")
	for at := 0; ; at++ {
		disk, left := preparedDisk(t), at
		fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(errorfs.Op) error {
			if left--; left == -1 {
				return broken
			}
			return nil
		}))
		err := snapshot.InstallAt(fs, dataDir, path(fs, snapshot.WorkDir, "incoming-1"), mark)
		if left >= 0 {
			check(t, err)
			return
		}
		failed := err != nil
		check(t, snapshot.Recover(disk, dataDir))
		if installed := wantOneStore(t, disk, fmt.Sprintf("failure of operation %d", at)); !installed && !failed {
			t.Fatalf("failure of operation %d: success was reported, but the old store is there", at)
		}
	}
}

func TestReceive_crashAtEveryOperation(t *testing.T) {
	rng := newRNG(t)
	stream := newStream(t)
	for range 10 {
		disk := newDisk(t)
		store := path(disk, snapshot.StoreDir)
		check(t, copyingEngine{fs: disk, files: oldFiles}.Checkpoint(store))
		sync(t, disk, store)
		sync(t, disk, dataDir)
		receiving := func(fs env.FS) error {
			return snapshot.Receive(fs, bytes.NewReader(stream), path(fs, snapshot.WorkDir, "in"))
		}
		check(t, crashes(disk, percents, rng, receiving, func(step int, after *vfs.MemFS) {
			check(t, snapshot.Recover(after, dataDir))
			if wantOneStore(t, after, fmt.Sprintf("crash at %d", step)) {
				t.Fatalf("crash at %d: installed without being asked", step)
			}
		}))
		// Law 1: what Receive accepted survives a power loss, names and bytes.
		lost := disk.CrashClone(vfs.CrashCloneCfg{})
		if _, err := snapshot.Verify(lost, path(lost, snapshot.WorkDir, "in")); err != nil {
			t.Fatalf("a received snapshot was lost: %v", err)
		}
	}
}

func TestRecover_nothingToDo(t *testing.T) {
	check(t, snapshot.Recover(vfs.NewMem(), dataDir))
	fs := newDisk(t)
	check(t, snapshot.Recover(fs, dataDir))
	wantNames(t, fs, dataDir)
	check(t, put(fs, path(fs, "store.install"), "not a marker at all, but as long as one"))
	if err := snapshot.Recover(fs, dataDir); !errors.Is(err, snapshot.ErrCorrupt) {
		t.Errorf("got %v, want %v", err, snapshot.ErrCorrupt)
	}
}
