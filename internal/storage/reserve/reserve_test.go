package reserve_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/reserve"
)

// disks answers how much room there is.
type disks struct {
	env.FS
	room map[string]uint64
	err  error
}

func (d *disks) DiskUsage(dir string) (env.DiskUsage, error) {
	return env.DiskUsage{AvailBytes: d.room[dir]}, d.err
}

func TestWatch_Look(t *testing.T) {
	d := &disks{FS: filestest.NewMem(), room: map[string]uint64{}}
	w := reserve.New(d, 800, "data", "wal")
	for _, step := range []struct {
		data, wal uint64
		low       bool
	}{
		{5000, 5000, false},
		{5000, 800, false}, // exactly the reserve
		{5000, 799, true},  // the disk of the log counts, too
		{5000, 810, true},  // a little more is not enough to go on
		{5000, 900, false},
		{10, 900, true},
		{901, 901, false},
	} {
		d.room["data"], d.room["wal"] = step.data, step.wal
		before := w.Low()
		changed, err := w.Look()
		if err != nil || w.Low() != step.low || changed != (before != step.low) || w.AvailableBytes() != min(step.data, step.wal) {
			t.Errorf("%+v: low %v, changed %v, %d available, %v", step, w.Low(), changed, w.AvailableBytes(), err)
		}
	}
	d.room["data"] = 0
	for _, d.err = range []error{errors.New("no answer"), syscall.ENOSYS} { // ENOSYS is an errors.ErrUnsupported
		if _, err := w.Look(); err == nil || w.Low() {
			t.Errorf("a disk that does not answer changed what is known, or went unnoticed: %v", err)
		}
	}
	d.err = env.ErrNoDiskUsage
	if _, err := w.Look(); err != nil || w.Low() {
		t.Errorf("a file system that cannot tell: %v, low %v", err, w.Low())
	}
	if (*reserve.Watch)(nil).Low() {
		t.Error("no watch is low")
	}
	none := reserve.New(&disks{FS: filestest.NewMem()}, 0, "data")
	if _, err := none.Look(); err != nil || none.Low() {
		t.Errorf("without a reserve a full disk is low: %v", err)
	}
}
