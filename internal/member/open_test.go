package member_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

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
	if err := member.Create(options, wal.Identity{Cluster: 9, Member: self, Storage: 1}, first); err != nil {
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
