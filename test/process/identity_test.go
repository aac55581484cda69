package process_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/testnet"
)

// awaitLog waits until a line of n's log holds text, from offset from on.
func (c *cluster) awaitLog(n *node, from int64, text string) {
	c.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		content, err := os.ReadFile(n.log)
		if err == nil && int64(len(content)) >= from && strings.Contains(string(content[from:]), text) {
			return
		}
		pause := time.NewTimer(50 * time.Millisecond)
		<-pause.C
	}
	c.t.Fatalf("%s does not say %q:\n%s", n.name, text, tail(n.log, 2000))
}

func logSize(n *node) int64 {
	info, err := os.Stat(n.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (c *cluster) wipe(n *node) {
	c.t.Helper()
	if err := os.RemoveAll(n.dir); err != nil {
		c.t.Fatal(err)
	}
}

// reset gives the place of a member anew whose process says that it has lost its disk. The leader refuses that until it has heard it,
// too, and so may one that was elected since.
func (c *cluster) reset(n, through *node) {
	c.t.Helper()
	until(c.t, n.name+" is reset", func(context.Context) bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		reset := exec.CommandContext(ctx, c.binary, "member", "reset", n.name, "--yes", "--timeout=20s", "--endpoints="+through.client)
		out, err := reset.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "has not lost its disk as far as is known here") {
			c.t.Fatalf("member reset %s: %v\n%s\n%s", n.name, err, out, tail(n.log, 2000))
		}
		return err == nil
	})
}

// mayWrite reports whether a write through n is acknowledged within a second and a half.
func (c *cluster) mayWrite(n *node, key string) bool {
	c.t.Helper()
	client := c.connect(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	_, err := client.Put(ctx, key, "x")
	return err == nil
}

func (c *cluster) wantKey(n *node, key, value string) {
	c.t.Helper()
	client := c.connect(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	got, err := client.Get(ctx, key)
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value {
		c.t.Errorf("%s of %s: an acknowledged write is gone: %v, %v", key, n.name, got, err)
	}
}

func (c *cluster) put(n *node, key, value string) {
	c.t.Helper()
	client := c.connect(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := client.Put(ctx, key, value); err != nil {
		c.t.Fatal(err)
	}
}

// leaderFirst returns the leader and the two others.
func (c *cluster) leaderFirst() []*node {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		for i, n := range c.nodes {
			client := c.connect(n)
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			s, err := client.Status(ctx, n.client)
			cancel()
			_ = client.Close()
			if err == nil && s.Leader != 0 && s.Leader == s.Header.MemberId {
				return append([]*node{n}, append(append([]*node{}, c.nodes[:i]...), c.nodes[i+1:]...)...)
			}
		}
	}
	c.t.Fatal("nobody leads")
	return nil
}

// TestCluster_diskLost: an acknowledged write is on two of three members. One of them comes back with an empty disk, beside
// the one that never had the write: together they must not serve. Given its place anew, it is a member again.
func TestCluster_diskLost(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	n := c.leaderFirst()
	c.put(n[0], "before", "1")
	n[2].kill()
	c.put(n[0], "w", "acknowledged")
	n[0].kill()
	n[1].kill()
	c.wipe(n[1])
	from := logSize(n[1])
	c.start(n[1])
	c.start(n[2])
	c.awaitLog(n[1], from, "has lost its disk")
	answer, err := http.Get(n[1].client + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "lost its disk") {
		t.Errorf("readyz of the empty member: %d, %q, %v", answer.StatusCode, text, err)
	}
	_ = answer.Body.Close()
	if c.mayWrite(n[2], "b") {
		t.Error("a write was acknowledged by members that lack an acknowledged one")
	}
	c.start(n[0])
	c.waitReady(n[0])
	c.wantKey(n[0], "w", "acknowledged")
	c.wantKey(n[2], "w", "acknowledged")

	c.awaitSaid(1, []string{"status", "--endpoints=" + n[0].client},
		n[1].name+" is down: member failed: this process is no member yet: it has lost its disk")

	// The place is given anew, under the same URLs; the process that waits takes it.
	client := c.connect(n[0])
	defer client.Close()
	c.reset(n[1], n[0])
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c.waitReady(n[1])
	c.wantKey(n[1], "w", "acknowledged")
	members, err := client.MemberList(ctx)
	if err != nil || len(members.Members) != 3 {
		t.Fatalf("members after the reset: %v, %v", members, err)
	}
	for _, m := range members.Members {
		if m.IsLearner {
			t.Errorf("%s does not vote", m.Name)
		}
	}
}

// TestCluster_majorityWiped: two of three lose their disks and start before the third. They must not found the cluster anew.
func TestCluster_majorityWiped(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.put(c.nodes[0], "z", "1")
	for _, n := range c.nodes {
		n.kill()
	}
	a, b, third := c.nodes[0], c.nodes[1], c.nodes[2]
	c.wipe(a)
	c.wipe(b)
	from := logSize(a)
	c.start(a)
	c.start(b)
	c.awaitLog(a, from, "waits for the other members of --initial-cluster")
	if c.mayWrite(a, "new") {
		t.Fatal("two empty disks founded the cluster anew")
	}
	c.start(third)
	c.awaitLog(a, from, "has lost its disk")
	if c.mayWrite(third, "new") || c.mayWrite(a, "new") {
		t.Error("a write was acknowledged although a majority has lost its disks")
	}
}

// TestCluster_rolledBack: an older copy of a data directory is put back. It is refused, shown, and never counted again.
func TestCluster_rolledBack(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	n := c.leaderFirst()
	stale := n[1]
	c.put(n[0], "a", "1")
	stale.kill()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(stale.dir)); err != nil {
		t.Fatal(err)
	}
	c.start(stale)
	c.waitReady(stale)
	c.put(n[0], "b", "2")
	stale.kill()
	c.wipe(stale)
	if err := os.CopyFS(stale.dir, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	n[0].proxy.late.Store(int64(200 * time.Millisecond)) // the other member meets it first; the leader shows it all the same
	from := logSize(stale)
	c.start(stale)
	c.awaitLog(stale, from, "rolled-back")
	<-stale.exited
	// However often it starts: its number of starts passes the one that was seen, and it is still refused.
	from = logSize(stale)
	c.start(stale)
	c.awaitLog(stale, from, "can not be used by its member any more")
	c.awaitSaid(0, []string{"member", "list", "--endpoints=" + n[0].client}, "rolled back")
	n[2].kill()
	if c.mayWrite(n[0], "c") {
		t.Error("a member that was rolled back helped to acknowledge a write")
	}
}

// TestCluster_cloned: a copy of a running member's data directory is started beside it.
func TestCluster_cloned(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	n := c.leaderFirst()
	original := n[1]
	clone := &node{name: original.name, dir: filepath.Join(t.TempDir(), "clone"), log: filepath.Join(t.TempDir(), "clone.log"),
		client: "http://" + testnet.Address(t), peer: testnet.Address(t), proxy: original.proxy}
	original.kill()
	if err := os.CopyFS(clone.dir, os.DirFS(original.dir)); err != nil {
		t.Fatal(err)
	}
	c.start(original)
	c.waitReady(original)
	c.start(clone)
	t.Cleanup(clone.kill)
	select {
	case <-clone.exited:
	case <-time.After(30 * time.Second):
		t.Fatalf("the clone runs on:\n%s", tail(clone.log, 2000))
	}
	if said := tail(clone.log, 4000); !strings.Contains(said, "rolled-back") && !strings.Contains(said, "cloned") {
		t.Errorf("the clone does not say why it ended:\n%s", said)
	}
	c.put(original, "after", "1")
	for _, peer := range []*node{n[0], n[2]} {
		c.wantKey(peer, "after", "1")
	}
}
