package wal_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Ensure that Inspect finds the same as Open, and writes nothing.
func TestInspect_readsOnly(t *testing.T) {
	fs := filestest.NewMem()
	options := wal.Options{FS: fs, Dir: "w"}
	w, err := wal.Create(options, identity)
	if err != nil {
		t.Fatal(err)
	}
	entries := []consensus.Entry{{Index: 1, Term: 1, Kind: consensus.EntryNoop}, {Index: 2, Term: 3, Kind: consensus.EntryNoop}}
	if err := w.Append(wal.Batch{Entries: entries, Hard: &consensus.HardState{Term: 4, Vote: 2, Commit: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writes := errors.New("it writes")
	options.FS = filestest.Wrap(fs, filestest.InjectorFunc(func(op filestest.Op) error {
		if op.Kind.ReadOrWrite() == filestest.OpIsWrite {
			return writes
		}
		return nil
	}))
	got, written, err := wal.Inspect(options)
	if err != nil {
		t.Fatal(err)
	}
	if got.Identity != identity || len(got.Entries) != 2 || got.Hard.Term != 4 || got.Entries[1].Position().Term != 3 || written.IsZero() {
		t.Errorf("got %+v, written %v", got, written)
	}
	options.Dir = "elsewhere"
	if _, _, err := wal.Inspect(options); !errors.Is(err, wal.ErrNoLog) {
		t.Errorf("no log: got %v", err)
	}
}
