package server

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that a restore by hand asks the disk for room, and that one which cannot tell refuses nothing.
func TestRoomFor(t *testing.T) {
	fs := filestest.NewMem()
	if err := fs.MkdirAll("dir", 0o700); err != nil {
		t.Fatal(err)
	}
	room := roomFor(fs, "dir")
	if err := room(1 << 40); err != nil {
		t.Errorf("a disk that cannot tell: %v", err)
	}
	fs.SetDiskUsage(env.DiskUsage{AvailBytes: 5 << 20, TotalBytes: 9 << 20})
	if err := room(5 << 20); err != nil {
		t.Error(err)
	}
	if err := room(6 << 20); err == nil || !strings.Contains(err.Error(), "takes about 6 MiB in dir, and 5 MiB are available") {
		t.Errorf("got %v", err)
	}
}
