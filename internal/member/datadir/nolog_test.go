package datadir_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Ensure that, when --wal-dir is wrong, the error names the log that lies in the data directory.
func TestOpen_logElsewhere(t *testing.T) {
	options := datatest.Options()
	datatest.Close(t, datatest.Create(t, options, 1))
	for _, row := range []struct {
		walDir string
		move   bool // the log is moved away first
		want   error
		says   string
	}{
		{"other", false, datadir.ErrLogElsewhere, "a log lies in data/wal: drop --wal-dir"},
		{"", true, wal.ErrNoLog, "give --wal-dir if the member was started with it before"},
		{"other", true, wal.ErrNoLog, "correct --wal-dir if it is wrong, and see that the log's disk is mounted"},
	} {
		if row.move {
			_ = options.FS.Rename("data/wal", "moved") // the second time it is there already
		}
		options.WALDir = row.walDir
		data, err := datadir.Open(options)
		if err == nil {
			datatest.Close(t, data)
		}
		_, inspected := datadir.Inspect(options)
		for _, err := range []error{err, inspected} {
			if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) ||
				datadir.Damaged(err) != (row.want == wal.ErrNoLog) {
				t.Errorf("log in %q: got %v, want to hear %q", row.walDir, err, row.says)
			}
		}
	}
	options.WALDir = "moved"
	datatest.Close(t, datatest.Open(t, options))
}
