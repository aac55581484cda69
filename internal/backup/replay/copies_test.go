package replay_test

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// readsOf counts how often each object is read.
type readsOf struct {
	objects.Store
	mu sync.Mutex
	of map[string]int
}

func (r *readsOf) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	r.mu.Lock()
	r.of[name]++
	r.mu.Unlock()
	return r.Store.Get(ctx, name, offset, length)
}

// Ensure that a restore goes back from made-up segments to a state shortly before them, and does not apply all that comes before
// again; that it needs room for that, and works without; and that it leaves no copies.
func TestRun_goesBack(t *testing.T) {
	m := newMember(t, 9, openPebble)
	m.write(20)
	m.settle()
	last := m.catalog().Bases[0]
	for range 12 {
		value := make([]byte, 1<<20)
		m.rng.Read(value)
		m.apply(kv.Command{Put: &kv.PutOp{Key: []byte("z"), Value: value}})
		m.settle()
	}
	for _, b := range m.catalog().Bases {
		if b.Hash != last.Hash {
			m.place.Remove(b.String())
		}
	}
	large := []backup.Stored{}
	for _, s := range m.catalog().Segments {
		if s.Size > 1<<19 {
			large = append(large, s)
		}
	}
	made := []int{6, 7, 8, 9, 10, 11}
	for _, i := range made {
		m.twists(&large[i])
	}
	for _, full := range []bool{false, true} {
		store, dir := &readsOf{Store: m.place, of: map[string]int{}}, t.TempDir()
		o := replay.Options{Store: store, FS: files.Disk, Dir: dir + "/scratch", OpenEngine: openPebble, Parallel: 1}
		o.Room = func(bytes int64) error {
			if _, err := os.Stat(o.Dir + ".base"); full && err == nil { // a copy holds the disk
				return io.ErrShortWrite
			}
			return nil
		}
		s, err := replay.Run(t.Context(), o, m.catalog(), backup.Target{})
		if err != nil {
			t.Fatal(err)
		}
		if got := contents(t, s.Machine); s.At.Index != m.index || got != m.was[m.index] || len(s.Damaged) != len(made) {
			t.Errorf("got entry %d, %d of %d objects damaged, %s", s.At.Index, len(s.Damaged), len(made), got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		often := store.of[large[0].String()] > 2 || store.of[last.String()] > 2
		if often != full {
			t.Errorf("full %v: the base was read %d times, and the first segment after it %d", full, store.of[last.String()],
				store.of[large[0].String()])
		}
		if left, err := files.Disk.List(dir); err != nil || len(left) != 1 {
			t.Errorf("%v stays: %v", left, err)
		}
	}
}

// killed is a file system of a process that is killed at a step.
type killed struct {
	env.FS
	left *int
}

var errKilled = errors.New("the process was killed")

func (k killed) step() error {
	if *k.left--; *k.left < 0 {
		return errKilled
	}
	return nil
}

func (k killed) RemoveAll(name string) error {
	if err := k.step(); err != nil {
		return err
	}
	return k.FS.RemoveAll(name)
}

func (k killed) MkdirAll(name string, perm os.FileMode) error {
	if err := k.step(); err != nil {
		return err
	}
	return k.FS.MkdirAll(name, perm)
}

func (k killed) Create(name string) (env.File, error) {
	if err := k.step(); err != nil {
		return nil, err
	}
	return k.FS.Create(name)
}

// Ensure that a restore which was killed at any step leaves nothing that the next one into the same directory does not remove,
// whether or not that one makes copies itself, and that it touches nothing else there.
func TestRun_killed(t *testing.T) {
	m, base := aged(t, openMem, 40)
	own, made := m.catalog(), 0
	for _, s := range own.Segments {
		if s.First > base.Index && made < 2 {
			m.twists(&s)
			made++
		}
	}
	forged, dir, whole := m.catalog(), t.TempDir(), false
	for _, other := range []string{"store.backup", "store.base.mine", "other"} {
		if err := files.Disk.MkdirAll(dir+"/"+other, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for step := 0; !whole; step++ {
		left := step
		fs := killed{files.Disk, &left}
		o := replay.Options{Store: m.place, FS: fs, Dir: dir + "/store", Parallel: 1}
		o.OpenEngine = func(dir string) (engine.Engine, error) {
			if err := fs.step(); err != nil {
				return nil, err
			}
			return openMem(dir)
		}
		if s, err := replay.Run(t.Context(), o, forged, backup.Target{}); err == nil {
			whole = left > 0
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		o.FS, o.OpenEngine = files.Disk, openMem
		s, err := replay.Run(t.Context(), o, own, backup.Target{})
		if err != nil {
			t.Fatalf("after step %d: %v", step, err)
		}
		if err := s.Close(); err != nil || s.At.Index != m.index {
			t.Errorf("after step %d: entry %d, %v", step, s.At.Index, err)
		}
		if left, err := files.Disk.List(dir); err != nil || len(left) != 4 {
			t.Fatalf("after step %d: %v stays: %v", step, left, err)
		}
	}
}

// Ensure that a base for which there is no room is not downloaded.
func TestRun_noRoom(t *testing.T) {
	m := newMember(t, 9, openMem)
	m.write(20)
	m.settle()
	place, full := &gets{Store: m.place, prefix: backup.FilePrefix}, errors.New("full")
	asked := int64(0)
	_, err := replay.Run(t.Context(), replay.Options{Store: place, FS: files.Disk, Dir: t.TempDir() + "/store", OpenEngine: openMem,
		Room: func(bytes int64) error {
			asked = bytes
			return full
		}}, m.catalog(), backup.Target{})
	if !errors.Is(err, full) || place.count > 0 || asked == 0 {
		t.Errorf("asked for %d bytes, %d files were read: %v", asked, place.count, err)
	}
}
