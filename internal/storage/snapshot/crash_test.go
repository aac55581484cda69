package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

var oldFiles = map[string]string{"000009.sst": "old table", "MANIFEST-7": "old manifest"}

var position = consensus.Position{Index: 4711, Term: 3}

// preparedDisk has an old store and a received snapshot, both durable.
func preparedDisk(t *testing.T) *filestest.MemFS {
	t.Helper()
	fs := newDisk(t)
	storeOld(t, fs)
	check(t, snapshot.Receive(fs, bytes.NewReader(newStream(t)), path(fs, snapshot.WorkDir, "incoming-1")))
	return fs
}

// storeOld makes the first generation.
func storeOld(t *testing.T, fs env.FS) {
	t.Helper()
	store := snapshot.StorePath(fs, dataDir, 1)
	check(t, durable.MakeDir(fs, store))
	check(t, copyingEngine{fs: fs, files: oldFiles}.Checkpoint(store))
	sync(t, fs, store)
	check(t, snapshot.Switch(fs, dataDir, snapshot.Current{Generation: 1}))
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
func crashes(disk *filestest.MemFS, percents []int, rng *rand.Rand, work func(env.FS) error,
	yield func(step int, after *filestest.MemFS)) error {
	step := 0
	err := work(filestest.Wrap(disk, filestest.InjectorFunc(func(op filestest.Op) error {
		if op.Kind.ReadOrWrite() == filestest.OpIsRead && op.Kind != filestest.OpOpenDir {
			return nil
		}
		for _, percent := range percents {
			yield(step, disk.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
		}
		step++
		return nil
	})))
	for _, percent := range percents {
		yield(step, disk.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
	}
	return err
}

// wantOneStore runs Recover and checks invariant 2: one whole store and no rest. It reports whether that is the new one.
func wantOneStore(t *testing.T, fs env.FS, what string) (installed bool) {
	t.Helper()
	current, err := snapshot.Recover(fs, dataDir)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	files, want := oldFiles, snapshot.Current{Generation: 1}
	if installed = current.Generation == 2; installed {
		files, want = newFiles, snapshot.Current{Generation: 2, Installed: position}
	}
	if current != want {
		t.Fatalf("%s: %+v counts, want %+v", what, current, want)
	}
	if err := holds(fs, snapshot.StorePath(fs, dataDir, current.Generation), files); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if all, err := snapshot.Generations(fs, dataDir); err != nil || len(all) != 1 {
		t.Fatalf("%s: generations %v are left, %v", what, all, err)
	}
	wantNames(t, fs, dataDir, snapshot.StoresDir)
	return installed
}

func newRNG(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var percents = []int{0, 30, 50, 70, 100}

func install(fs env.FS) error {
	if err := snapshot.Stage(fs, dataDir, path(fs, snapshot.WorkDir, "incoming-1"), 2); err != nil {
		return err
	}
	return snapshot.Switch(fs, dataDir, snapshot.Current{Generation: 2, Installed: position})
}

func TestSwitch_crashAtEveryOperation(t *testing.T) {
	rng := newRNG(t)
	counts := map[bool]int{}
	for range 10 {
		disk := preparedDisk(t)
		check(t, crashes(disk, percents, rng, install, func(step int, after *filestest.MemFS) {
			// The machine may crash again at each operation of the recovery, and the next recovery must do.
			first := after.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
			installed := wantOneStore(t, first, fmt.Sprintf("crash at %d", step))
			counts[installed]++
			recovering := func(fs env.FS) error {
				_, err := snapshot.Recover(fs, dataDir)
				return err
			}
			check(t, crashes(after, []int{0, 50, 100}, rng, recovering, func(again int, twice *filestest.MemFS) {
				what := fmt.Sprintf("crash at %d, then at %d of the recovery", step, again)
				// Which one counts cannot change any more once a recovery has looked at it.
				if got := wantOneStore(t, twice, what); got != installed {
					t.Fatalf("%s: installed %v, was %v", what, got, installed)
				}
			}))
		}))
		if !wantOneStore(t, disk.CrashClone(filestest.CrashCloneCfg{}), "after the end") {
			t.Fatal("an installation that returned nil was lost")
		}
	}
	t.Logf("%d crashes left the old store, %d the new one", counts[false], counts[true])
	if counts[false] == 0 || counts[true] == 0 {
		t.Error("only one outcome was seen")
	}
}

func TestStage_notASnapshot(t *testing.T) {
	disk := preparedDisk(t)
	bogus := path(disk, snapshot.WorkDir, "bogus")
	check(t, disk.MkdirAll(bogus, 0o755))
	if err := snapshot.Stage(disk, dataDir, bogus, 2); err == nil {
		t.Error("an empty directory was staged")
	}
	if wantOneStore(t, disk, "after a refusal") {
		t.Error("it counts")
	}
}

func TestSwitch_failingDisk(t *testing.T) {
	broken := errors.New("input/output error")
	for at := 0; ; at++ {
		disk, left := preparedDisk(t), at
		fs := filestest.Wrap(disk, filestest.InjectorFunc(func(filestest.Op) error {
			if left--; left == -1 {
				return broken
			}
			return nil
		}))
		err := install(fs)
		if left >= 0 {
			check(t, err)
			return
		}
		if installed := wantOneStore(t, disk, fmt.Sprintf("failure of operation %d", at)); !installed && err == nil {
			t.Fatalf("failure of operation %d: success was reported, but the old store is there", at)
		}
	}
}

func TestReceive_crashAtEveryOperation(t *testing.T) {
	rng := newRNG(t)
	stream := newStream(t)
	for range 10 {
		disk := newDisk(t)
		storeOld(t, disk)
		receiving := func(fs env.FS) error {
			return snapshot.Receive(fs, bytes.NewReader(stream), path(fs, snapshot.WorkDir, "in"))
		}
		check(t, crashes(disk, percents, rng, receiving, func(step int, after *filestest.MemFS) {
			if wantOneStore(t, after, fmt.Sprintf("crash at %d", step)) {
				t.Fatalf("crash at %d: installed without being asked", step)
			}
		}))
		// Law 1: what Receive accepted survives a power loss, names and bytes.
		lost := disk.CrashClone(filestest.CrashCloneCfg{})
		if _, err := snapshot.Verify(lost, path(lost, snapshot.WorkDir, "in")); err != nil {
			t.Fatalf("a received snapshot was lost: %v", err)
		}
	}
}

// Ensure that nothing is removed while it is not known which generation counts.
func TestRecover_damagedCurrent(t *testing.T) {
	for name, row := range map[string]struct {
		spoil func(fs env.FS, current string) error
		want  error
	}{
		"garbled":       {func(fs env.FS, current string) error { return put(fs, current, "2\n") }, snapshot.ErrCorrupt},
		"missing":       {func(fs env.FS, current string) error { return fs.Remove(current) }, snapshot.ErrStoreMissing},
		"another text":  {func(fs env.FS, current string) error { return durable.WriteSealed(fs, current, "x") }, snapshot.ErrForeign},
		"another store": {func(fs env.FS, _ string) error { return snapshot.Switch(fs, dataDir, snapshot.Current{Generation: 7}) }, snapshot.ErrStoreMissing},
	} {
		t.Run(name, func(t *testing.T) {
			fs := preparedDisk(t)
			check(t, install(fs))
			check(t, row.spoil(fs, path(fs, snapshot.StoresDir, "CURRENT")))
			if _, err := snapshot.Recover(fs, dataDir); !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
			check(t, holds(fs, snapshot.StorePath(fs, dataDir, 1), oldFiles))
			check(t, holds(fs, snapshot.StorePath(fs, dataDir, 2), newFiles))
		})
	}
}
