//go:build unix

package upgrade_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that a file that never ends is killed, with all that it has started, and said so; and that nothing waits for what it
// started in the background.
func TestRun_check_hangs(t *testing.T) {
	if testing.Short() {
		t.Skip("a file has ten seconds")
	}
	t.Parallel()
	f := startCluster(t)
	pid := filepath.Join(t.TempDir(), "pid")
	r := f.run(t, "check", build(t, 0o755, "(echo $$ >"+pid+"; exec sleep 600) & sleep 600"))
	if r.Status != command.StatusRefused || !strings.Contains(r.Err, "did not end within 10s, and was killed") {
		t.Errorf("%+v", r)
	}
	group, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(group))); err != nil || !gone(-n) {
		t.Errorf("%s: processes of the file go on: %v", group, err)
	}
}

// gone waits until no process of a group is left.
func gone(group int) bool {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if errors.Is(syscall.Kill(group, 0), syscall.ESRCH) {
			return true
		}
	}
	return false
}
