package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// giveSmallDisk starts a member again on a disk of its own, and returns where this process sees it.
func (c *cluster) giveSmallDisk(n *node) string {
	c.t.Helper()
	probe := exec.Command("true")
	onSmallDisk(probe, c.t.TempDir(), c.t.TempDir())
	if out, err := probe.CombinedOutput(); err != nil {
		c.t.Skipf("no disk can be mounted here: %v: %s", err, out)
	}
	n.kill()
	from := n.dir
	n.dir = filepath.Join(c.t.TempDir(), "disk")
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	n.prepare = func(cmd *exec.Cmd) { onSmallDisk(cmd, n.dir, from) }
	c.start(n)
	c.waitReady(n)
	return filepath.Join(fmt.Sprintf("/proc/%d/root", n.cmd.Process.Pid), n.dir)
}

// TestDisk_fullIsGivenBack overwrites a few keys until the disk is nearly full and writes are refused. A compaction alone gives the
// disk back: nothing is written any more that could push the deletions of the history out.
func TestDisk_fullIsGivenBack(t *testing.T) {
	t.Parallel()
	const keys, size = 50, 10 << 10
	c := startCluster(t, 1, fmt.Sprintf("--disk-reserve-bytes=%d", smallReserve))
	n := c.nodes[0]
	disk := c.giveSmallDisk(n)
	client := c.connect(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	random := rand.NewChaCha8([32]byte{})
	value := make([]byte, size)
	var revision int64
	for full := false; !full; {
		ops := make([]clientv3.Op, keys)
		for i := range ops {
			_, _ = random.Read(value) // so that nothing can compress it
			ops[i] = clientv3.OpPut(fmt.Sprintf("k%d", i), string(value))
		}
		switch put, err := client.Txn(ctx).Then(ops...).Commit(); {
		case errors.Is(err, rpctypes.ErrNoSpace):
			full = true
		case err != nil:
			t.Fatal(err)
		default:
			revision = put.Header.Revision
		}
	}
	const live = keys * size
	if got := storeBytes(t, disk); got < 10*live {
		t.Fatalf("the store has %d bytes before: too few to show anything", got)
	}
	if _, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	c.awaitStore(ctx, n, disk, live)
	awaitPut(ctx, t, n, client, func(err error) bool { return err == nil })
}

// TestDisk_full fills the disk of a member that runs. Its clients' writes are refused with NOSPACE, their reads are served,
// deletions go on, and so does all through the others; once there is room its clients write again, and it never stopped.
func TestDisk_full(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, fmt.Sprintf("--disk-reserve-bytes=%d", smallReserve))
	n := c.nodes[0]
	disk := c.giveSmallDisk(n)
	own, other := c.connect(n), c.connect(c.nodes[1])
	defer own.Close()
	defer other.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := own.Put(ctx, "before", "1"); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
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
