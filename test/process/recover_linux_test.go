package process_test

import (
	"context"
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
	t.Parallel()
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

// TestRecover_majorityServes recovers a member that cannot reach the others, on the word that they are lost, while they
// serve. They go on, and say who was recovered without them.
func TestRecover_majorityServes(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, majority := e.nodes[0], e.nodes[1:]
	e.fill(one)
	one.kill()
	out, status := e.withoutNetwork("recover", "--data-dir", one.dir, "--yes", "--members-are-lost", "m2,m3")
	if status != 0 {
		t.Fatalf("recover: status %d:\n%s", status, out)
	}
	e.nodes = majority
	e.use()
	stop := e.load(2)
	e.launch(one, "new")
	for _, n := range majority {
		until(t, n.name+" says who was recovered", func(context.Context) bool {
			log := tail(n.log, 1<<20)
			return strings.Contains(log, "m1 (") && strings.Contains(log, "goes on while it has a quorum")
		})
	}
	until(t, "the recovered one says who is about", func(context.Context) bool {
		return strings.Contains(tail(one.log, 1<<20), "is of the time before this cluster was recovered")
	})
	e.awaitWrites(100)
	acked := stop()
	if len(acked) < 20 {
		t.Errorf("only %d writes were acknowledged by the majority", len(acked))
	}
	for _, n := range majority {
		e.checkKeys(n, acked)
	}
	one.kill()
	e.gone = append(e.gone, one)
}
