package logwriter

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Ensure that a writer keeps no entries of what it has written: they lie in the core's log as it was then, and one of them
// would keep all of that.
func TestWriter_Sync_keepsNoEntries(t *testing.T) {
	data := datatest.Create(t, datatest.Options(), 1)
	defer datatest.Close(t, data)
	w := New(Options{
		Append: data.WAL.Append, Persisted: data.Persisted, Compact: data.WAL.Compact,
		Deliver: func([]consensus.Message) {}, Put: func(...raft.Input) {},
	})
	if err := w.Write([]node.Persist{
		{Seq: 1, Batch: wal.Batch{Entries: datatest.Puts(1, 2, 2)}},
		{Seq: 2, Batch: wal.Batch{Entries: datatest.Puts(3, 1, 2)}},
	}); err != nil {
		t.Fatal(err)
	}
	for i, b := range w.batches[:cap(w.batches)] {
		if b.Entries != nil {
			t.Errorf("batch %d still has %d entries", i, len(b.Entries))
		}
	}
}
