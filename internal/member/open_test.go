package member_test

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// memoryOptions place a member's data in memory.
func memoryOptions() member.DataOptions {
	fs := vfs.NewMem()
	return member.DataOptions{
		FS: fs, Dir: "data", Logger: slog.New(slog.DiscardHandler),
		OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.OpenMem(engine.MemOptions{FS: fs, Dir: dir})
		},
	}
}

func createdData(t *testing.T, options member.DataOptions, self consensus.MemberID) *member.Data {
	t.Helper()
	first := consensus.Config{
		Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}},
	}
	if err := member.Create(options, wal.Identity{Cluster: 9, Member: self, Storage: wal.StorageID{byte(self)}}, first); err != nil {
		t.Fatal(err)
	}
	return openData(t, options)
}

func openData(t *testing.T, options member.DataOptions) *member.Data {
	t.Helper()
	data, err := member.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func closeData(t *testing.T, data *member.Data) {
	t.Helper()
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
}

// puts returns count entries of one term that put a key each.
func puts(from consensus.Index, count int, term consensus.Term) []consensus.Entry {
	entries := make([]consensus.Entry, count)
	for i := range entries {
		command := kv.Command{Put: &kv.PutOp{Key: []byte{'k', byte(i)}, Value: []byte{byte(term)}}}
		entries[i] = consensus.Entry{
			Index: from + consensus.Index(i), Term: term, Kind: consensus.EntryCommand, Payload: command.Append(nil),
		}
	}
	return entries
}

// receivedSnapshot puts a snapshot of another member's state into the place where received ones lie.
func receivedSnapshot(t *testing.T, options member.DataOptions, from *member.Data) string {
	t.Helper()
	const built = "built"
	if err := snapshot.Build(from.Engine.Checkpoint, from.Options.FS, built); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(snapshot.Write(w, from.Options.FS, built)) }()
	dir := options.FS.PathJoin(options.Dir, snapshot.WorkDir, "incoming")
	if err := snapshot.Receive(options.FS, r, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Ensure that a log whose uncommitted end was never part of the history does not outlive a snapshot that a crash kept
// the log from hearing of. A former leader's end may reach beyond the snapshot: its length proves nothing.
func TestOpen_snapshotInstalled_logConflicts(t *testing.T) {
	leader := createdData(t, memoryOptions(), 2)
	defer closeData(t, leader)
	if _, err := leader.Machine.Apply(puts(1, 50, 2)); err != nil {
		t.Fatal(err)
	}

	options := memoryOptions()
	data := createdData(t, options, 1)
	if err := data.WAL.Append(wal.Batch{
		Hard: &consensus.HardState{Term: 2, Commit: 0}, Entries: puts(1, 100, 1),
	}); err != nil {
		t.Fatal(err)
	}
	meta := leader.Machine.SnapshotMeta()
	if err := data.Replace(meta, receivedSnapshot(t, options, leader)); err != nil {
		t.Fatal(err)
	}
	closeData(t, data) // the crash: nobody told the log

	data = openData(t, options)
	defer closeData(t, data)
	restored := data.Restored
	if restored.Base.Mark != meta.Mark || len(restored.Entries) != 0 || restored.Applied != meta.Mark.Index {
		t.Errorf("base %v with %d entries, applied %d; want the log to begin after %v",
			restored.Base.Mark, len(restored.Entries), restored.Applied, meta.Mark)
	}
}

// answeredBy makes an entry one that a leader answered on the fast path, at a revision.
func answeredBy(e *consensus.Entry, leader consensus.MemberID, revision uint64) {
	e.Proposal = consensus.ProposalID{Session: consensus.SessionID{Member: 3, Number: 1}, Sequence: uint64(e.Index)}
	e.Answered, e.ExactRevision = leader, revision
}

func heldRecord(e *consensus.Entry, config consensus.ConfigID) consensus.Record {
	return consensus.Record{
		Attempt: consensus.Attempt{Proposal: e.Proposal, Revision: e.ExactRevision},
		Term:    e.Term, Config: config, Payload: e.Payload,
	}
}

// former is the data of a member that led in term 1: it answered entries on the fast path that nobody else got, and holds
// a record for another member.
func former(t *testing.T, options member.DataOptions) (data *member.Data, want []consensus.Record) {
	t.Helper()
	data = createdData(t, options, 1)
	log := puts(1, 60, 1)
	answeredBy(&log[9], 1, 10) // the snapshot may have decided it: whoever knows its fate drops it
	answeredBy(&log[54], 1, 55)
	answeredBy(&log[55], 2, 56) // another leader did
	// A slow one stands for no promise.
	log[56].Proposal = consensus.ProposalID{Session: consensus.SessionID{Member: 3, Number: 1}, Sequence: 57} // slow
	log[57] = consensus.Entry{Index: 58, Term: 1, Kind: consensus.EntryConfig, Payload: []byte("any")}
	answeredBy(&log[58], 1, 58)
	held := heldRecord(&puts(90, 1, 1)[0], consensus.ConfigID{})
	held.Attempt = consensus.Attempt{
		Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 2, Number: 4}, Sequence: 1}, Revision: 77,
	}
	batch := wal.Batch{
		Hard: &consensus.HardState{Term: 1}, Entries: log,
		Witness: []wal.WitnessRecord{{Attempt: wal.AttemptOf(held.Attempt), Payload: consensus.AppendRecord(nil, &held)}},
	}
	if err := data.WAL.Append(batch); err != nil {
		t.Fatal(err)
	}
	first := data.Restored.Base.ConfigID
	return data, []consensus.Record{
		held, heldRecord(&log[9], first), heldRecord(&log[54], first),
		heldRecord(&log[58], consensus.ConfigID{Index: 58, Term: 1}),
	}
}

// What a leader answered on the fast path is promised by its entry. When a snapshot that a crash kept the log from hearing
// of takes the log's place, the promise stays, as a record, and is as durable as the new beginning of the log.
func TestOpen_snapshotInstalled_keepsWhatWasAnswered(t *testing.T) {
	leader := createdData(t, memoryOptions(), 2)
	defer closeData(t, leader)
	if _, err := leader.Machine.Apply(puts(1, 50, 2)); err != nil {
		t.Fatal(err)
	}
	options := memoryOptions()
	data, want := former(t, options)
	meta := leader.Machine.SnapshotMeta()
	if err := data.Replace(meta, receivedSnapshot(t, options, leader)); err != nil {
		t.Fatal(err)
	}
	closeData(t, data) // the crash: nobody told the log
	for _, when := range []string{"when the log is dropped", "after another start"} {
		data = openData(t, options)
		restored := data.Restored
		if restored.Base.Mark != meta.Mark || len(restored.Entries) != 0 {
			t.Errorf("%s: the log begins after %v with %d entries, want %v and none", when, restored.Base.Mark,
				len(restored.Entries), meta.Mark)
		}
		if diff := cmp.Diff(want, restored.Records); diff != "" {
			t.Errorf("%s: the pool is different:\n%s", when, diff)
		}
		if got, want := restored.Revision, uint64(leader.Machine.Store().Revision()); got != want {
			t.Errorf("%s: revision %d, want that of the snapshot, %d", when, got, want)
		}
		closeData(t, data)
	}
}

// A log that stays needs no records for its own entries.
func TestOpen_logStays_recordsStay(t *testing.T) {
	options := memoryOptions()
	data, want := former(t, options)
	closeData(t, data)
	data = openData(t, options)
	defer closeData(t, data)
	if diff := cmp.Diff(want[:1], data.Restored.Records); diff != "" || len(data.Restored.Entries) != 60 {
		t.Errorf("%d entries, and the pool is different:\n%s", len(data.Restored.Entries), diff)
	}
}

func TestOpen_damagedRecord(t *testing.T) {
	options := memoryOptions()
	data := createdData(t, options, 1)
	if err := data.WAL.Append(wal.Batch{Witness: []wal.WitnessRecord{{Payload: []byte("no record")}}}); err != nil {
		t.Fatal(err)
	}
	closeData(t, data)
	data, err := member.Open(options)
	if err == nil {
		closeData(t, data)
	}
	if err == nil || !strings.Contains(err.Error(), "damaged") || !member.Unusable(err) ||
		!strings.Contains(err.Error(), "data/wal") {
		t.Errorf("got %v, want an error that says where the damage is and what to do", err)
	}
}
