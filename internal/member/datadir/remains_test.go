package datadir_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// Ensure that a start on a full disk frees what is left of a snapshot that was being received before it writes to the log: the
// log may need a new segment, and a start that fails for want of room would fail again and again.
func TestOpen_fullDisk_freesRemains(t *testing.T) {
	options := datatest.Options()
	datatest.Close(t, datatest.Create(t, options, 1))
	plain := options.FS
	remains := plain.PathJoin(options.Dir, snapshot.WorkDir, "1")
	if err := plain.MkdirAll(remains, 0o700); err != nil {
		t.Fatal(err)
	}
	full := func() bool {
		_, err := plain.Stat(remains)
		return !errors.Is(err, fs.ErrNotExist)
	}
	options.FS = filestest.Wrap(plain, func(op filestest.Op) error {
		if op.Kind.ReadOrWrite() == filestest.OpIsWrite && op.Kind != filestest.OpRemoveAll && full() &&
			strings.Contains(op.Path, "wal") {
			return syscall.ENOSPC
		}
		return nil
	})
	data := datatest.Open(t, options)
	datatest.Close(t, data)
	if full() {
		t.Error("the remains of the snapshot are still there")
	}
}
