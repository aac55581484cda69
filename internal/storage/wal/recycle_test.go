package wal_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

func entries(first consensus.Index, n, payloadBytes int) []consensus.Entry {
	all := make([]consensus.Entry, n)
	for i := range all {
		index := first + consensus.Index(i)
		all[i] = consensus.Entry{Index: index, Term: 1, Kind: consensus.EntryCommand,
			Payload: bytes.Repeat([]byte{byte(index)}, payloadBytes)}
	}
	return all
}

func metaAt(index consensus.Index) consensus.SnapshotMeta {
	return consensus.SnapshotMeta{Position: consensus.Position{Index: index, Term: 1}}
}

// Ensure that records of a file's former life never come back, although they are at the very offsets at which the records of
// its present life begin and end.
func TestWAL_recycledBytesStayDead(t *testing.T) {
	fs := memory()
	w := must(wal.Create(options(fs, 8<<10), identity))
	for index := consensus.Index(1); index < 120; index++ {
		if err := w.Append(wal.Batch{Entries: entries(index, 1, 600)}); err != nil {
			t.Fatal(err)
		}
		if index%20 == 0 {
			if err := w.Compact(metaAt(index - 2)); err != nil {
				t.Fatal(err)
			}
		}
		_, got, err := wal.Open(options(fs.CrashClone(filestest.CrashCloneCfg{}), 8<<10))
		if err != nil || got.CutBytes != 0 {
			t.Fatalf("at entry %d: cut %d, %v", index, got.CutBytes, err)
		}
		if n := len(got.Entries); n == 0 || got.Entries[n-1].Index != index {
			t.Fatalf("at entry %d: %d entries", index, n)
		}
	}
	if s := w.Stats(); s.Recycled < 4 {
		t.Errorf("only %d segments were recycled: %+v", s.Recycled, s)
	}
}

// Ensure that compaction frees disk space, and keeps at most maxSpares spare files.
func TestWAL_Compact_freesSpace(t *testing.T) {
	fs := filestest.NewMem()
	w := must(wal.Create(options(fs, 8<<10), identity))
	record := wal.WitnessRecord{Attempt: wal.AttemptID{1}, Payload: []byte("held")}
	hard := &consensus.HardState{Term: 9, Vote: 4}
	if err := w.Append(wal.Batch{Hard: hard, Witness: []wal.WitnessRecord{record}}); err != nil {
		t.Fatal(err)
	}
	for index := consensus.Index(1); index <= 200; index++ {
		if err := w.Append(wal.Batch{Entries: entries(index, 1, 600)}); err != nil {
			t.Fatal(err)
		}
	}
	before := len(must(fs.List(dir)))
	if err := w.Compact(metaAt(199)); err != nil {
		t.Fatal(err)
	}
	after := len(must(fs.List(dir)))
	if s := w.Stats(); before < 10 || s.Segments > 2 || s.Spares != 6 || after != s.Segments+s.Spares {
		t.Errorf("%d files before, %d after, %+v", before, after, s)
	}
	_, got, err := wal.Open(options(fs, 8<<10))
	if err != nil || got.Hard != *hard || len(got.Witness) != 1 || string(got.Witness[0].Payload) != "held" ||
		len(got.Entries) != 1 || got.Entries[0].Index != 200 || got.Base.Position.Index != 199 {
		t.Errorf("%v: %+v", err, got)
	}
	if err := w.Compact(metaAt(201)); err == nil {
		t.Error("compacted beyond the end")
	}
}

// Ensure that a snapshot frees the segments that it replaces at once.
func TestWAL_Append_resetFreesSpace(t *testing.T) {
	fs := filestest.NewMem()
	w := must(wal.Create(options(fs, 8<<10), identity))
	for index := consensus.Index(1); index <= 100; index++ {
		if err := w.Append(wal.Batch{Entries: entries(index, 1, 600)}); err != nil {
			t.Fatal(err)
		}
	}
	meta := metaAt(5000)
	if err := w.Append(wal.Batch{Reset: &meta, Entries: entries(5001, 2, 10)}); err != nil {
		t.Fatal(err)
	}
	if s := w.Stats(); s.Segments != 1 {
		t.Errorf("%+v", s)
	}
	_, got, err := wal.Open(options(fs, 8<<10))
	if err != nil || got.Base.Position != meta.Position || len(got.Entries) != 2 {
		t.Errorf("%v: %+v", err, got)
	}
}

// Ensure that the configuration that a cluster begins with, which is in no entry, outlives rotations and restarts.
func TestWAL_Append_resetBeforeFirstEntry(t *testing.T) {
	fs := filestest.NewMem()
	w := must(wal.Create(options(fs, 8<<10), identity))
	meta := newHistory(1, 1).meta(consensus.Position{})
	if err := w.Append(wal.Batch{Reset: &meta}); err != nil {
		t.Fatal(err)
	}
	m := model{Base: meta}
	for index := consensus.Index(1); index <= 40; index++ {
		b := wal.Batch{Entries: entries(index, 1, 600)}
		m.append(&b)
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
		var got wal.Recovered
		var err error
		if w, got, err = wal.Open(options(fs, 8<<10)); err != nil || m.differs(&got) != "" {
			t.Fatalf("at entry %d: %v: %s", index, err, m.differs(&got))
		}
	}
}

// Ensure that one entry may be larger than a segment, by far.
func TestWAL_Append_largeEntry(t *testing.T) {
	fs := filestest.NewMem()
	w := must(wal.Create(options(fs, 1<<20), identity))
	if err := w.Append(wal.Batch{Entries: entries(1, 1, 100)}, wal.Batch{Entries: entries(2, 1, 65<<20)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(wal.Batch{Entries: entries(3, 1, 100)}); err != nil {
		t.Fatal(err)
	}
	_, got, err := wal.Open(options(fs, 1<<20))
	if err != nil || len(got.Entries) != 3 || len(got.Entries[1].Payload) != 65<<20 {
		t.Fatalf("%v: %d entries", err, len(got.Entries))
	}
}

// Ensure that one Append is one sync, however many batches it takes.
func TestWAL_Append_oneSync(t *testing.T) {
	w := must(wal.Create(options(filestest.NewMem(), 0), identity))
	before := w.Stats().Syncs
	hard := &consensus.HardState{Term: 2}
	err := w.Append(wal.Batch{Entries: entries(1, 9, 10), Hard: hard}, wal.Batch{Entries: entries(5, 9, 10)}, wal.Batch{})
	if s := w.Stats(); err != nil || s.Syncs != before+1 || s.Entries != 18 || s.Appends != 1 {
		t.Errorf("%v: %+v", err, s)
	}
}

// Ensure that mistakes of the caller stop the member before they reach the disk.
func TestWAL_Append_brokenLaw(t *testing.T) {
	for name, bad := range map[string]wal.Batch{
		"a gap":                 {Entries: entries(13, 1, 1)},
		"a gap in the batch":    {Entries: append(entries(11, 1, 1), entries(13, 1, 1)...)},
		"behind the compaction": {Entries: entries(5, 9, 1)},
	} {
		w := must(wal.Create(options(filestest.NewMem(), 0), identity))
		if err := errors.Join(w.Append(wal.Batch{Entries: entries(1, 10, 1)}), w.Compact(metaAt(5))); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", name)
				}
			}()
			_ = w.Append(bad)
		}()
	}
}

func TestCreate_exists(t *testing.T) {
	fs := filestest.NewMem()
	if _, _, err := wal.Open(options(fs, 0)); !errors.Is(err, wal.ErrNoLog) {
		t.Errorf("nothing there: %v", err)
	}
	w := must(wal.Create(options(fs, 0), identity))
	if _, err := wal.Create(options(fs, 0), identity); !errors.Is(err, wal.ErrExists) {
		t.Errorf("a log is there: %v", err)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if err := w.Append(wal.Batch{Entries: entries(1, 1, 1)}); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
