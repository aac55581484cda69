package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	sectorBytes    = 512 // of the kernel's counters, whatever the device has
	sectorsWritten = 6   // field of a device's stat, from zero
)

// deviceWritten is how many bytes the device of a directory has been written to since the machine started, by any process;
// false where the directory is on no device of its own. The counts of /proc/PID/io are others: a write of some bytes into a
// page that is cached counts there as the whole folio.
func deviceWritten(dir string) (int64, bool) {
	var at syscall.Stat_t
	if err := syscall.Stat(dir, &at); err != nil {
		return 0, false
	}
	major := at.Dev>>8&0xfff | at.Dev>>32&^0xfff
	minor := at.Dev&0xff | at.Dev>>12&^0xff
	content, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", major, minor&0xffffffff))
	if err != nil {
		return 0, false
	}
	return writtenOf(string(content))
}

func writtenOf(stat string) (int64, bool) {
	fields := strings.Fields(stat)
	if len(fields) <= sectorsWritten {
		return 0, false
	}
	return number(fields[sectorsWritten]) * sectorBytes, true
}

// diskBytes is what the files below a directory take.
func diskBytes(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
				sum += stat.Blocks * sectorBytes
			}
		}
		return nil
	})
	return sum
}
