package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	smallDisk    = 256 << 20
	smallReserve = 64 << 20
)

// onSmallDisk makes a command run with a disk of its own at dir, in a mount namespace of its own. The disk begins as a copy
// of from. That works for root, and where users may make namespaces.
func onSmallDisk(cmd *exec.Cmd, dir, from string) {
	script := fmt.Sprintf(`mount -t tmpfs -o size=%d none "$DISK" && cp -a "$FROM/." "$DISK" && exec "$0" "$@"`, smallDisk)
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.Env = append(os.Environ(), "DISK="+dir, "FROM="+from)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
}

// TestDisk_full fills the disk of a member that runs. Its clients' writes are refused with NOSPACE, their reads are served,
// deletions go on, and so does all through the others; once there is room its clients write again, and it never stopped.
func TestDisk_full(t *testing.T) {
	probe := exec.Command("true")
	onSmallDisk(probe, t.TempDir(), t.TempDir())
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("no disk can be mounted here: %v: %s", err, out)
	}
	c := startCluster(t, 3, fmt.Sprintf("--disk-reserve-bytes=%d", smallReserve))
	n := c.nodes[0]
	n.kill()
	from := n.dir
	n.dir = filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	n.prepare = func(cmd *exec.Cmd) { onSmallDisk(cmd, n.dir, from) }
	c.start(n)
	c.waitReady(n)
	own, other := c.connect(n), c.connect(c.nodes[1])
	defer own.Close()
	defer other.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := own.Put(ctx, "before", "1"); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(fmt.Sprintf("/proc/%d/root", n.cmd.Process.Pid), n.dir, "ballast")
	fillDisk(t, ballast, smallReserve/2)

	awaitPut(ctx, t, n, own, func(err error) bool { return errors.Is(err, rpctypes.ErrNoSpace) })
	for i := range 20 {
		if _, err := other.Put(ctx, fmt.Sprint("other", i), "1"); err != nil {
			t.Errorf("put %d through another member: %v", i, err)
		}
		if got, err := own.Get(ctx, fmt.Sprint("other", i)); err != nil || len(got.Kvs) != 1 {
			t.Errorf("get %d through the member whose disk is full: %v", i, err)
		}
	}
	if _, err := own.Delete(ctx, "before"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if alarms, err := other.AlarmList(ctx); err != nil || len(alarms.Alarms) > 0 {
		t.Errorf("alarms at another member: %v, %v", alarms, err)
	}
	c.wantLowDiskShown(n)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	awaitPut(ctx, t, n, own, func(err error) bool { return err == nil })
	if log := tail(n.log, 1<<20); !strings.Contains(log, "the disk is nearly full") || !strings.Contains(log, "writes go on") {
		t.Error("its log does not tell of it")
	}
}

// wantLowDiskShown wants every view of a member whose disk is nearly full to say so.
func (c *cluster) wantLowDiskShown(n *node) {
	c.t.Helper()
	words := "disk of " + n.name + " nearly full: "
	for _, row := range []struct {
		line, want string
		status     int
	}{
		{"status", words, 1},
		{"member list", words, 0},
		{"put during 1", words, 1},
		{"endpoint status", words, 0},
		{"endpoint health", "NOSPACE", 1},
		{"alarm list", "alarm:NOSPACE", 0},
	} {
		cmd := exec.Command(c.binary, append(strings.Fields(row.line), "--endpoints="+n.client)...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != row.status || !strings.Contains(string(out), row.want) {
			c.t.Errorf("quorate %s: status %d, want %d and %q:\n%s", row.line, got, row.status, row.want, out)
		}
	}
	for path, status := range map[string]int{"/readyz?verbose": http.StatusOK, "/health": http.StatusServiceUnavailable} {
		response, err := http.Get(n.client + path)
		if err != nil {
			c.t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != status || !strings.Contains(string(body), words) {
			c.t.Errorf("%s: %d, want %d and %q: %s", path, response.StatusCode, status, words, body)
		}
	}
}

// fillDisk leaves so many bytes of room on the disk that path lies on.
func fillDisk(t *testing.T, path string, leave uint64) {
	t.Helper()
	var room syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &room); err != nil {
		t.Fatal(err)
	}
	free := room.Bavail * uint64(room.Bsize)
	if free < smallReserve*5/4 {
		t.Fatalf("only %d bytes were free", free)
	}
	if err := os.WriteFile(path, make([]byte, free-leave), 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitPut puts until the result is what is wanted. The member must not stop meanwhile.
func awaitPut(ctx context.Context, t *testing.T, n *node, client *clientv3.Client, want func(error) bool) {
	t.Helper()
	for {
		_, err := client.Put(ctx, "during", "1")
		if want(err) {
			return
		}
		select {
		case <-n.exited:
			t.Fatalf("the member stopped:\n%s", tail(n.log, 2000))
		case <-ctx.Done():
			t.Fatalf("the last put: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
