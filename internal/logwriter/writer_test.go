package logwriter_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir/datatest"
	"github.com/quorate/quorate/internal/logwriter"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Ensure that everything that waits is written by one sync, that the core is told the last request before anybody hears of it
// (whom the core tells how far its disk is, for a read, may have heard from this member what is there), and that what
// promises it leaves after that and in order.
func TestWriter_Write(t *testing.T) {
	data := datatest.Create(t, datatest.Options(), 1)
	defer datatest.Close(t, data)
	before := data.WAL.Stats().Syncs
	var did []string
	w := logwriter.New(logwriter.Options{
		Data: data, Append: data.WAL.Append,
		Deliver: func(messages []consensus.Message) {
			did = append(did, fmt.Sprintf("sent %d after %d syncs", messages[0].To, data.WAL.Stats().Syncs-before))
		},
		Evaluate: func([]raft.Evaluation) { did = append(did, "evaluated") },
		Put:      func(inputs ...raft.Input) { did = append(did, fmt.Sprintf("%+v", inputs[0])) },
	})
	hard := consensus.HardState{Term: 2}
	err := w.Write([]node.Persist{
		{Seq: 1, Batch: wal.Batch{Hard: &hard, Entries: datatest.Puts(1, 2, 2)}, After: []consensus.Message{{To: 2}}},
		{Seq: 2, Batch: wal.Batch{Entries: datatest.Puts(3, 1, 2)}, Evaluate: make([]raft.Evaluation, 1)},
		{After: []consensus.Message{{To: 3}}},
	})
	want := []string{"{Seq:2}", "sent 2 after 1 syncs", "evaluated", "sent 3 after 1 syncs"}
	if err != nil || !slices.Equal(did, want) {
		t.Errorf("%v: did %q, want %q", err, did, want)
	}
}
