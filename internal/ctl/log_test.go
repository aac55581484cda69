package ctl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/storage/files"
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
