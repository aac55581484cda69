package slowsync_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/test/interpose"
	"github.com/quorate/quorate/test/slowsync"
)

const child = "SLOWSYNC_TEST_FILE"

func TestMain(m *testing.M) {
	slowsync.Main()
	if path := os.Getenv(child); path != "" {
		os.Exit(syncThree(path))
	}
	os.Exit(m.Run())
}

// syncThree writes and syncs a file three times.
func syncThree(path string) int {
	file, err := os.Create(path)
	for i := 0; err == nil && i < 3; i++ {
		if _, err = file.WriteString("x"); err == nil {
			err = file.Sync()
		}
	}
	if err != nil {
		return 1
	}
	return 0
}

// Ensure that each sync of a program is counted and happens no sooner than it may.
func TestDisk(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const delay = 20 * time.Millisecond
	path := filepath.Join(t.TempDir(), "file")
	command := exec.Command(self, "an argument")
	command.Env = append(os.Environ(), child+"="+path)
	var disk slowsync.Disk
	disk.Delay(delay)
	begun := time.Now()
	if err := disk.Start(command); err != nil {
		if errors.Is(err, interpose.ErrNoListener) {
			t.Skip("this kernel or container allows no seccomp listener")
		}
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if disk.Syncs() != 3 {
		t.Errorf("%d syncs, want 3", disk.Syncs())
	}
	if took := time.Since(begun); took < 3*delay {
		t.Errorf("three syncs took %s, less than their delays", took)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "xxx" {
		t.Errorf("the file has %q, %v", content, err)
	}
}

// Ensure that a program that is not there is an error of Start or of the process, not a hang.
func TestDisk_Start_missing(t *testing.T) {
	var disk slowsync.Disk
	command := exec.Command("/does/not/exist")
	if err := disk.Start(command); err == nil {
		if err = command.Wait(); err == nil {
			t.Error("a missing program ran")
		}
	}
}
