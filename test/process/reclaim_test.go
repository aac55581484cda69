package process_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestDisk_givenBack overwrites a few keys, compacts and writes no more. Each member's store gives the disk back what was deleted, by
// itself: that of one that was stopped meanwhile, too, and that of one that is killed as soon as the compaction is answered. A
// process knows neither what the one before it wrote nor what that deleted.
func TestDisk_givenBack(t *testing.T) {
	t.Parallel()
	const keys, size, rounds = 50, 10 << 10, 100
	c := startCluster(t, 3)
	client := c.connect(c.nodes[0])
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	random := rand.NewChaCha8([32]byte{})
	value := make([]byte, size)
	var revision int64
	for range rounds {
		ops := make([]clientv3.Op, keys)
		for i := range ops {
			_, _ = random.Read(value) // so that nothing can compress it
			ops[i] = clientv3.OpPut(fmt.Sprintf("k%d", i), string(value))
		}
		put, err := client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			t.Fatal(err)
		}
		revision = put.Header.Revision
	}
	const live = keys * size
	killed, stopped := c.nodes[1], c.nodes[2]
	for _, n := range c.nodes {
		if got := storeBytes(t, n.dir); got < 10*live {
			t.Fatalf("the store of %s has %d bytes before: too few to show anything", n.name, got)
		}
	}
	if err := stopped.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-stopped.exited
	if _, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	killed.kill()
	for _, n := range []*node{killed, stopped} {
		c.start(n)
	}
	c.waitReady(killed)
	c.waitReady(stopped)
	for _, n := range c.nodes {
		c.awaitStore(ctx, n, n.dir, live)
	}
}

// awaitStore waits until the store in a member's directory, as seen at dir, is at most half as large again as what is live in it,
// and 32 MiB.
func (c *cluster) awaitStore(ctx context.Context, n *node, dir string, live int64) {
	c.t.Helper()
	most := live*3/2 + 32<<20
	for got := storeBytes(c.t, dir); got > most; got = storeBytes(c.t, dir) {
		select {
		case <-ctx.Done():
			c.t.Fatalf("the store of %s has %d bytes of %d that are live, want at most %d", n.name, got, live, most)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// storeBytes returns how large the files of the store in a member's directory are. Files that go meanwhile do not count.
func storeBytes(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "member", "stores"), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
