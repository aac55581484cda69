package replay_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
)

func contentsOf(t *testing.T, m *apply.Machine) [32]byte {
	t.Helper()
	sum, err := m.Contents(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// A state that was restored by entries that were applied at once has the contents of a member that applied them one by one,
// and compacted meanwhile; and each row that differs changes the contents. A state that is extended has them, too.
func TestState_contents(t *testing.T) {
	for seed := range int64(3) {
		m := newMember(t, seed, openMem)
		m.write(120)
		m.settle()
		middle := m.index - 40
		want := contentsOf(t, m.machine)
		var store engine.Engine
		options := replay.Options{Store: m.place, FS: files.Disk, Dir: t.TempDir() + "/scratch",
			OpenEngine: func(dir string) (_ engine.Engine, err error) {
				store, err = m.open(dir)
				return store, err
			}}
		s, err := replay.Run(t.Context(), options, m.catalog(), backup.Target{Index: middle})
		if err != nil {
			t.Fatal(err)
		}
		if contentsOf(t, s.Machine) == want {
			t.Errorf("seed %d: entry %d has the contents of entry %d", seed, middle, m.index)
		}
		if err := s.Extend(t.Context(), options, m.catalog(), backup.Target{}); err != nil || s.At.Index != m.index {
			t.Fatalf("seed %d: extended to %+v, %v", seed, s.At, err)
		}
		if got := contentsOf(t, s.Machine); got != want {
			t.Errorf("seed %d: got %x, want %x", seed, got, want)
		}
		for _, table := range []string{"d", "l", "s"} {
			m.changesContents(store, s, table)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// changesContents changes rows of a table until the contents are others; then it changes them back. Rows that a compaction
// deletes do not count.
func (m *member) changesContents(store engine.Engine, s *replay.State, table string) {
	m.t.Helper()
	before := contentsOf(m.t, s.Machine)
	it, err := store.NewIter([]byte(table), []byte{table[0] + 1})
	if err != nil {
		m.t.Fatal(err)
	}
	defer it.Close()
	counts := false
	for ok := it.First(); ok && !counts; ok = it.Next() {
		key, value := bytes.Clone(it.Key()), bytes.Clone(it.Value())
		set := func(value []byte) {
			batch := store.NewBatch()
			batch.Set(key, value)
			if err := errors.Join(batch.Commit(), batch.Close()); err != nil {
				m.t.Fatal(err)
			}
		}
		set(append(bytes.Clone(value), 1))
		counts = contentsOf(m.t, s.Machine) != before
		set(value)
		if contentsOf(m.t, s.Machine) != before {
			m.t.Errorf("the row %x is as it was, and the contents are not", key)
		}
	}
	if !counts {
		m.t.Errorf("no row of table %s counts", table)
	}
}
