package replay_test

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/kv"
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
		o.Room = func(int64) error {
			if full {
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
