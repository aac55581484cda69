package process_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// withoutNetwork runs a command in a network namespace of its own, in which nothing can be reached.
func (e *elastic) withoutNetwork(args ...string) (output string, status int) {
	e.t.Helper()
	cmd := exec.Command(e.binary, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		status = exit.ExitCode()
	default:
		e.t.Skipf("no network namespace can be made here: %v", err)
	}
	return string(out), status
}

// TestRecover_noNetwork recovers a member whose network is down while the others serve: by the command, and by the flag
// of a unit file that starts before the network. Both are refused, and the others go on.
func TestRecover_noNetwork(t *testing.T) {
	e := startTrio(t)
	one := e.nodes[0]
	acked := e.fill(one)
	one.kill()
	whole := fingerprint(t, filepath.Join(one.dir, "member"))
	for _, args := range [][]string{
		{"recover", "--data-dir", one.dir, "--yes"},
		{"--force-new-cluster", "--name=" + one.name, "--data-dir=" + one.dir, "--listen-client-urls=" + one.client,
			"--advertise-client-urls=" + one.client, "--listen-peer-urls=http://" + one.peer,
			"--initial-advertise-peer-urls=http://" + one.peer},
	} {
		out, status := e.withoutNetwork(args...)
		if status != 1 || !strings.Contains(out, "cannot be reached") || !strings.Contains(out, "nothing was changed") {
			t.Errorf("%s: status %d:\n%s", args[0], status, out)
		}
	}
	if fingerprint(t, filepath.Join(one.dir, "member")) != whole {
		t.Error("a recovery that was refused has changed something")
	}
	e.launch(one, "new")
	e.waitReady(one)
	for _, n := range e.nodes {
		e.checkKeys(n, acked)
	}
}
