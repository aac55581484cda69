package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrittenOf(t *testing.T) {
	const stat = " 4623568 631699 86433786 4449737 20257065 2423057 648271264 5219562 0 2247348 10732931 3000197 1376 3061132232\n"
	if got, ok := writtenOf(stat); !ok || got != 648271264*512 {
		t.Errorf("got %d, %v", got, ok)
	}
	if got, ok := writtenOf("1 2 3"); ok {
		t.Errorf("of something else: got %d", got)
	}
}

func TestDiskBytes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := diskBytes(dir); got < 1<<20 || got > 1<<20+64<<10 {
		t.Errorf("a file of a MiB: got %d", got)
	}
	if got := diskBytes(filepath.Join(dir, "b")); got != 0 {
		t.Errorf("of what is not there: got %d", got)
	}
}

// Ensure that only the metrics that are asked for are read, and summed over members.
func TestCounts_add(t *testing.T) {
	got := counts{}
	for range 2 {
		got.add(strings.NewReader("# HELP quorate_wal_syncs_total Syncs.\nquorate_wal_syncs_total 3\n" +
			"quorate_wal_written_bytes_total{part=\"ahead\"} 1.5e+06\nquorate_wal_written_bytes_total{part=\"other\"} 7\nbroken\n"))
	}
	since := got.since(counts{"quorate_wal_syncs_total": 2})
	if len(since) != 2 || since["quorate_wal_syncs_total"] != 4 || since[`quorate_wal_written_bytes_total{part="ahead"}`] != 3e6 {
		t.Errorf("%v", since)
	}
}
