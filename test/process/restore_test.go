package process_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// restore makes the data directory of each member of c, which do not run, from a snapshot.
func (c *cluster) restore(file string, flags ...string) {
	c.t.Helper()
	for _, n := range c.nodes {
		args := append([]string{"snapshot", "restore", file, "--name=" + n.name, "--data-dir=" + n.dir,
			"--initial-cluster=" + c.initialCluster(), "--initial-advertise-peer-urls=http://" + n.proxy.address()}, flags...)
		if out, err := exec.Command(c.binary, args...).CombinedOutput(); err != nil {
			c.t.Fatalf("restore %s: %v\n%s", n.name, err, out)
		}
	}
}

// Ensure that three members begin with the snapshot of another cluster: keys at their revisions, leases, users, and history for
// a watch; that they hold the same; and that nothing is restored into a directory in use.
func TestRestore(t *testing.T) {
	from := startCluster(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	old := from.connect(from.nodes[0])
	lease, err := old.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"1", "2", "3"} {
		if _, err := old.Put(ctx, "a", value, clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
	}
	wrote, err := old.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	enableAuth(t, ctx, old)
	file := filepath.Join(t.TempDir(), "s.db")
	save := exec.Command(from.binary, "snapshot", "save", file, "--endpoints="+from.nodes[0].client, "--user=root:rootpw")
	if out, err := save.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	from.nodes[0].kill()

	c := newCluster(t, 3)
	c.restore(file)
	for _, n := range c.nodes {
		c.run(n, "--name="+n.name, "--data-dir="+n.dir, "--listen-client-urls="+n.client, "--advertise-client-urls="+n.client,
			"--listen-peer-urls=http://"+n.peer) // as after etcdutl: the directory says the rest
	}
	root := c.login("root", c.nodes...)
	got, err := root.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if kv, want := got.Kvs[0], wrote.Kvs[0]; kv.String() != want.String() || got.Header.Revision != wrote.Header.Revision {
		t.Errorf("got %v at revision %d, want %v at %d", kv, got.Header.Revision, want, wrote.Header.Revision)
	}
	left, err := root.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
	if err != nil || left.TTL <= 0 || len(left.Keys) != 1 {
		t.Errorf("lease: %+v, %v", left, err)
	}
	alice := c.login("alice", c.nodes...)
	watch := alice.Watch(ctx, "a", clientv3.WithRev(wrote.Kvs[0].CreateRevision))
	if events := (<-watch).Events; len(events) != 3 || string(events[0].Kv.Value) != "1" {
		t.Errorf("a watch from the first revision got %v", events)
	}
	if _, err := alice.Put(ctx, "c", "x"); err == nil {
		t.Error("alice may write what she could not")
	}
	for _, n := range c.nodes[1:] {
		one, err := root.HashKV(ctx, c.nodes[0].client, wrote.Header.Revision)
		other, err2 := root.HashKV(ctx, n.client, wrote.Header.Revision)
		if err != nil || err2 != nil || one.Hash != other.Hash {
			t.Errorf("%s holds something else: %v, %v, %v, %v", n.name, one, other, err, err2)
		}
	}
	again, err := exec.Command(c.binary, "snapshot", "restore", file, "--data-dir="+c.nodes[0].dir).CombinedOutput()
	if err == nil || !strings.Contains(string(again), "not empty") {
		t.Errorf("a directory in use was restored into: %v\n%s", err, again)
	}
}
