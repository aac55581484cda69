package logwriter_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/logwriter"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Ensure that everything that waits is written by one sync, that the core is told the last request before any other member
// hears of it (one that the core tells how far its disk is, for a read, may have heard from this member what is there), and
// that what promises it leaves after that and in order.
func TestWriter_Write(t *testing.T) {
	data := datatest.Create(t, datatest.Options(), 1)
	defer datatest.Close(t, data)
	before := data.WAL.Stats().Syncs
	var did []string
	w := logwriter.New(logwriter.Options{
		Append: data.WAL.Append, Persisted: data.Persisted, Compact: data.WAL.Compact,
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
	want := []string{"{Seq:2 Took:0}", "sent 2 after 1 syncs", "evaluated", "sent 3 after 1 syncs"}
	if err != nil || !slices.Equal(did, want) {
		t.Errorf("%v: did %q, want %q", err, did, want)
	}
}

// Ensure that each step does one thing, the core's knowledge first, and that the negative control turns only that round.
func TestWriter_Step(t *testing.T) {
	for _, last := range []bool{false, true} {
		data := datatest.Create(t, datatest.Options(), 1)
		defer datatest.Close(t, data)
		var did []string
		w := logwriter.New(logwriter.Options{
			Append: data.WAL.Append, Persisted: data.Persisted, Compact: data.WAL.Compact,
			Synced:    func(requests []node.Persist) { did = append(did, fmt.Sprintf("%d on disk", len(requests))) },
			Deliver:   func(messages []consensus.Message) { did = append(did, fmt.Sprintf("sent %d", messages[0].To)) },
			Evaluate:  func([]raft.Evaluation) { did = append(did, "evaluated") },
			Put:       func(inputs ...raft.Input) { did = append(did, fmt.Sprintf("%+v", inputs[0])) },
			Compacted: func(base consensus.SnapshotMeta) { did = append(did, fmt.Sprintf("forgot %d", base.Position.Index)) },
			Faults:    logwriter.Faults{TellCoreLast: last},
		})
		entries := datatest.Puts(1, 3, 2)
		err := w.Begin([]node.Persist{
			{Seq: 1, Batch: wal.Batch{Entries: entries}, After: []consensus.Message{{To: 2}}, Evaluate: make([]raft.Evaluation, 1)},
			{}, {After: []consensus.Message{{To: 3}}},
			{Base: &consensus.SnapshotMeta{Position: entries[0].Position()}},
		})
		steps := []int{len(did)} // how much was done after each
		for more := true; more && err == nil; steps = append(steps, len(did)) {
			more, err = w.Step()
		}
		want := []string{"4 on disk", "{Seq:1 Took:0}", "sent 2", "evaluated", "sent 3", "forgot 1"}
		if last {
			want = []string{"4 on disk", "sent 2", "evaluated", "sent 3", "{Seq:1 Took:0}", "forgot 1"}
		}
		if err != nil || !slices.Equal(did, want) || !slices.Equal(steps, []int{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%v: did %q, so much after each step: %d; want %q", err, did, steps, want)
		}
		if more, err := w.Step(); more || err != nil || len(did) != len(want) {
			t.Errorf("one step more: %t, %v, %q", more, err, did[len(want):])
		}
	}
}

// Ensure that the core, and what answers for this disk, are told how long each request took, and that votes are not.
func TestWriter_Write_tells(t *testing.T) {
	data := datatest.Create(t, datatest.Options(), 1)
	defer datatest.Close(t, data)
	var told []string
	w := logwriter.New(logwriter.Options{
		Append: data.WAL.Append, Persisted: data.Persisted, Compact: data.WAL.Compact,
		Took: func(r *node.Persist) uint32 { return uint32(10 + r.Seq) },
		Deliver: func(messages []consensus.Message) {
			for _, m := range messages {
				told = append(told, fmt.Sprintf("message %d: %d", m.Kind, m.DiskTook))
			}
		},
		Evaluate: func(e []raft.Evaluation) { told = append(told, fmt.Sprintf("evaluation: %d", e[0].Message.DiskTook)) },
		Put: func(inputs ...raft.Input) {
			told = append(told, fmt.Sprintf("core: %d", inputs[0].(raft.Persisted).Took))
		},
	})
	err := w.Write([]node.Persist{
		{Seq: 1, Batch: wal.Batch{Entries: datatest.Puts(1, 2, 2)}, After: []consensus.Message{
			{Kind: consensus.MsgAppendReply}, {Kind: consensus.MsgVoteReply}, {Kind: consensus.MsgRecorded},
		}},
		{Seq: 2, Batch: wal.Batch{Entries: datatest.Puts(3, 1, 2)}, Evaluate: make([]raft.Evaluation, 1)},
		{After: []consensus.Message{{Kind: consensus.MsgAcknowledged}}},
	})
	want := []string{"core: 12", fmt.Sprintf("message %d: 11", consensus.MsgAppendReply), fmt.Sprintf("message %d: 0", consensus.MsgVoteReply),
		fmt.Sprintf("message %d: 11", consensus.MsgRecorded), "evaluation: 12", fmt.Sprintf("message %d: 10", consensus.MsgAcknowledged)}
	if err != nil || !slices.Equal(told, want) {
		t.Errorf("%v: told %q, want %q", err, told, want)
	}
}
