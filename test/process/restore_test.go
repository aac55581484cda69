package process_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/directory"
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
	t.Parallel()
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
		c.runRestored(n)
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
	restoredTwice(t, ctx, c, file)
}

// runRestored starts a member as after etcdutl: the directory says the rest.
func (c *cluster) runRestored(n *node, flags ...string) {
	c.t.Helper()
	c.run(n, append([]string{"--name=" + n.name, "--data-dir=" + n.dir, "--listen-client-urls=" + n.client,
		"--advertise-client-urls=" + n.client, "--listen-peer-urls=http://" + n.peer}, flags...)...)
}

// restoredTwice restores the same snapshot once more, with the same token, so that both clusters have one id, and starts a
// member of the first beside two of the second. It must neither end them nor take the place of its namesake.
func restoredTwice(t *testing.T, ctx context.Context, c *cluster, file string) {
	t.Helper()
	for _, n := range c.nodes {
		n.kill()
		if err := os.Rename(n.dir, n.dir+".first"); err != nil {
			t.Fatal(err)
		}
	}
	c.restore(file)
	serving, third := c.nodes[:2], c.nodes[2]
	for _, n := range serving {
		c.runRestored(n, "--founding=majority")
	}
	root := c.login("root", serving...)
	if _, err := root.Put(ctx, "a", "before"); err != nil {
		t.Fatal(err)
	}
	own, from := third.dir, []int64{logSize(serving[0]), logSize(serving[1])}
	third.dir += ".first"
	c.runRestored(third)
	for i, n := range serving {
		c.awaitLog(n, from[i], "of another history")
	}
	if _, err := root.Put(ctx, "a", "beside"); err != nil {
		t.Errorf("the members do not serve any more: %v", err)
	}
	until(t, "member list tells the state, and an alarm", func(context.Context) bool {
		status, list := c.ran([]string{"member", "list", "--user=root:rootpw", "--endpoints=" + serving[0].client + "," + serving[1].client})
		return status == 0 && strings.Count(list, "of another history") >= 2
	})
	third.kill()
	third.dir = own
	c.runRestored(third, "--founding=majority")
	if got, err := c.login("root", third).Get(ctx, "a"); err != nil || string(got.Kvs[0].Value) != "beside" {
		t.Errorf("the third member reads %v, %v", got, err)
	}
}

// TestRestore_oneOfThree restores one member whose disk is lost, while the others serve. Command, process and the others'
// logs say that this is wrong, and what they say leads to a whole cluster with all that was written.
func TestRestore_oneOfThree(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	e.write(one, "before")
	file := filepath.Join(e.dir, "s.db")
	e.quorate(0, []string{"snapshot", "save", file, "--endpoints=" + one.client})
	e.write(two, "after the snapshot")
	three.kill()
	if err := os.RemoveAll(three.dir); err != nil {
		t.Fatal(err)
	}
	var members []string
	for _, n := range e.nodes {
		members = append(members, n.name+"=http://"+n.peer)
	}
	e.quorate(0, []string{"snapshot", "restore", file, "--name=m3", "--data-dir=" + three.dir,
		"--initial-cluster=" + strings.Join(members, ","), "--initial-advertise-peer-urls=http://" + three.peer},
		"first: if other members of the old cluster run and serve, do not go on", "`quorate member reset m3`")
	e.runRestored(three)
	e.waitLog(three, "restore no more: all that was written since the backup would be lost. Stop this process, move "+three.dir)
	e.waitLog(one, "snapshot restore` made its data while this cluster serves, stop it")
	three.kill()
	if err := os.Rename(three.dir, three.dir+".aside"); err != nil {
		t.Fatal(err)
	}
	e.launch(three, "new")
	e.reset(three, one)
	e.waitReady(three)
	e.checkKeys(three, map[string]string{"load/acked": "after the snapshot"})
}

// Ensure that three members begin with a past state of a continuous backup: each from the same entry, so that they meet, with
// the revisions raised, and with nothing that was written later.
func TestRestore_continuous(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	place, err := directory.Open(files.Disk, dir, directory.Options{Now: time.Now,
		Unique: func() string { n++; return strconv.Itoa(n) }})
	if err != nil {
		t.Fatal(err)
	}
	var commands []kv.Command
	for i := range 20 {
		commands = append(commands, kv.Command{Put: &kv.PutOp{Key: []byte("a"), Value: []byte(strconv.Itoa(i))}})
	}
	heads := backuptest.Ship(t, place, commands)
	c := newCluster(t, 3)
	for _, node := range c.nodes {
		out, err := exec.Command(c.binary, "restore", "--from=file://"+dir, "--at=entry:12", "--name="+node.name,
			"--data-dir="+node.dir, "--initial-cluster="+c.initialCluster(), "--initial-cluster-token=once",
			"--initial-advertise-peer-urls=http://"+node.proxy.address()).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", node.name, err, out)
		}
	}
	for _, node := range c.nodes {
		c.runRestored(node)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, node := range c.nodes {
		got, err := c.connect(node).Get(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "11" || got.Kvs[0].ModRevision != int64(heads[11].Revision) ||
			got.Header.Revision < 1_000_000_000 {
			t.Errorf("%s: got %v", node.name, got)
		}
	}
	if _, err := c.connect(c.nodes[0]).Put(ctx, "a", "later"); err != nil {
		t.Error(err)
	}
}
