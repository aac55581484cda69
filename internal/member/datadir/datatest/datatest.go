package datatest

import (
	"io"
	"log/slog"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Options place a member's data on a new file system in memory.
func Options() datadir.Options { return OptionsIn(filestest.NewMem(), "data") }

// OptionsIn places a member's data on a file system that other members may share.
func OptionsIn(fs env.FS, dir string) datadir.Options {
	return datadir.Options{
		FS: fs, Dir: dir, Logger: slog.New(slog.DiscardHandler),
		OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.OpenMem(engine.MemOptions{FS: fs, Dir: dir})
		},
	}
}

// Create makes the data of a member of a cluster of three and opens it.
func Create(t *testing.T, options datadir.Options, self consensus.MemberID) *datadir.Data {
	t.Helper()
	first := consensus.Config{
		Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}},
	}
	identity := wal.Identity{Cluster: 9, Member: self, Storage: wal.StorageID{byte(self)}}
	if err := datadir.Create(options, identity, first); err != nil {
		t.Fatal(err)
	}
	return Open(t, options)
}

// Open opens data.
func Open(t *testing.T, options datadir.Options) *datadir.Data {
	t.Helper()
	data, err := datadir.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Close closes data.
func Close(t *testing.T, data *datadir.Data) {
	t.Helper()
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
}

// Puts returns count entries of one term that put a key each.
func Puts(from consensus.Index, count int, term consensus.Term) []consensus.Entry {
	entries := make([]consensus.Entry, count)
	for i := range entries {
		command := kv.Command{Put: &kv.PutOp{Key: []byte{'k', byte(i)}, Value: []byte{byte(term)}}}
		entries[i] = consensus.Entry{
			Index: from + consensus.Index(i), Term: term, Kind: consensus.EntryCommand, Payload: command.Append(nil),
		}
	}
	return entries
}

// Receive puts a snapshot of another member's state where received snapshots lie, and returns its directory.
func Receive(t *testing.T, options datadir.Options, from *datadir.Data) string {
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
