package process_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that a required file on a disk that is full has calls refused that must be recorded, with the reason, but not root's;
// and that they pass again by themselves once the disk has room, with nothing lost on the way.
func TestAudit_fullDisk(t *testing.T) {
	t.Parallel()
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, 1, "--level-policy=now", "--audit-log-required="+filepath.Join(disk, "audit.log"),
		"--audit-log-deadline=500ms")
	n := c.nodes[0]
	n.prepare = func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `mount -t tmpfs -o size=16m none "$DISK" && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path, cmd.Env = "/bin/sh", append(os.Environ(), "DISK="+disk)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	if os.Getuid() != 0 {
		t.Skip("only root mounts a disk here")
	}
	c.start(n)
	c.waitReady(n)
	inside := filepath.Join(fmt.Sprintf("/proc/%d/root", n.cmd.Process.Pid), disk)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	plain := c.connect(n)
	enableAuth(t, ctx, plain)
	_ = plain.Close()
	c.setAudit()
	alice, root := c.login("alice", n), c.login("root", n)
	if err := putAs(ctx, alice, "a1"); err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(inside, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096)) // by pages, until none is left
	}
	_ = filler.Close()
	var refused error
	for i := 0; refused == nil && ctx.Err() == nil; i++ { // the last block of the file may have room
		refused = putAs(ctx, alice, fmt.Sprint("a", i%10))
	}
	if !refusedForAudit(refused) || !strings.Contains(refused.Error(), "no space left on device") {
		t.Fatalf("got %v", refused)
	}
	for _, words := range [][]string{{"put", "a1", "v"}, {"del", "a1"}} {
		cmd := exec.CommandContext(ctx, c.binary, append(words, "--user=alice:alicepw", "--endpoints="+n.client, "--timeout=2s")...)
		if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(said), "AUDIT_BLOCKED: ") {
			t.Errorf("quorate %s: %v, %s", words[0], err, said)
		}
	}
	if err := putAs(ctx, root, "repaired"); err != nil {
		t.Errorf("root: %v", err)
	}
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	until(t, "calls pass again", func(ctx context.Context) bool { return putAs(ctx, alice, "a2") == nil })
	until(t, "root's call is recorded", func(context.Context) bool {
		records, err := os.ReadFile(filepath.Join(inside, "audit.log"))
		return err == nil && strings.Contains(string(records), `"key":"repaired"`) && strings.HasSuffix(string(records), "\n")
	})
	if said, status := c.audit("verify", filepath.Join(inside, "audit.log")); status != 0 && status != command.StatusNotProved {
		t.Errorf("status %d: %s", status, said)
	}
}
