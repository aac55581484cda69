package ctl_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Ensure that a log is printed from its own directory and from the data directory around it, and that what is no log, and a
// damaged one, are told.
func TestRun_logDump(t *testing.T) {
	data := t.TempDir()
	o := wal.Options{FS: files.Disk, Dir: filepath.Join(data, "wal")}
	log, err := wal.Create(o, wal.Identity{Cluster: 0xc, Member: 0xa, Storage: wal.StorageID{5}})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(wal.Batch{Entries: []consensus.Entry{{Index: 1, Term: 7, Kind: consensus.EntryNoop}}}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ctltest.Result {
		return ctltest.Run(t, t.Context(), command.Streams{}, "", append([]string{"log", "dump"}, args...)...)
	}
	around, inside := run(data), run(o.Dir)
	if around.Status != command.StatusOK || around.Out != inside.Out || !strings.Contains(around.Out, "noop") ||
		!strings.Contains(around.Out, "cluster c member a") {
		t.Errorf("got %+v and %+v", around, inside)
	}
	if got := run(t.TempDir()); got.Status != command.StatusRefused || got.Err == "" {
		t.Errorf("a directory without a log: %+v", got)
	}
	if got := run(); got.Status != command.StatusUsage {
		t.Errorf("no directory: %+v", got)
	}
	segments, err := filepath.Glob(filepath.Join(o.Dir, "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	content[100] ^= 1
	if err := os.WriteFile(segments[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(data); got.Status != command.StatusRefused || !strings.Contains(got.Err, "see the listing") {
		t.Errorf("a damaged log: %+v", got)
	}
}

// Ensure that an encrypted log is printed with its key, from wherever it lies, and that a missing key or ring is told.
func TestRun_logDump_encrypted(t *testing.T) {
	data, elsewhere := t.TempDir(), t.TempDir()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, append(bytes.Repeat([]byte{7}, 31), 0xff), 0o400); err != nil {
		t.Fatal(err)
	}
	ring, err := (keysource.Source{KeyFile: key}).Create(t.Context(), files.Disk, data, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(data, "member", "wal")
	for _, dir := range []string{inside, elsewhere} {
		log, err := wal.Create(wal.Options{FS: files.Disk, Dir: dir, Keys: ring}, wal.Identity{Cluster: 0xc})
		if err != nil {
			t.Fatal(err)
		}
		entry := consensus.Entry{Index: 1, Term: 7, Kind: consensus.EntryNoop}
		if err := errors.Join(log.Append(wal.Batch{Entries: []consensus.Entry{entry}}), log.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ args, want string }{
		{filepath.Join(data, "member") + " --encryption-key-file=" + key, "noop"},
		{inside + " --encryption-key-file=" + key, "noop"},
		{elsewhere + " --data-dir=" + data + " --encryption-key-file=" + key, "noop"},
		{inside, "give --encryption-key-file"},
		{elsewhere + " --encryption-key-file=" + key, "give --data-dir"},
	} {
		got := ctltest.Run(t, t.Context(), command.Streams{}, "", append([]string{"log", "dump"}, strings.Fields(row.args)...)...)
		if !strings.Contains(got.Out+got.Err, row.want) || (got.Status == command.StatusOK) != (row.want == "noop") {
			t.Errorf("%s: %+v", row.args, got)
		}
	}
}
