package process_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
)

// startEtcd runs a real etcd of one member as a node, from the program that ETCD_BINARY names.
func startEtcd(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 1)
	n := c.nodes[0]
	c.binary = os.Getenv("ETCD_BINARY")
	peer := "http://" + testnet.Address(t)
	c.run(n, "--name=m1", "--data-dir="+n.dir, "--listen-client-urls="+n.client, "--advertise-client-urls="+n.client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=m1="+peer)
	c.waitReady(n)
	return c
}

// shortLease is how many seconds a lease has that ends: longer than no mirror runs, since one that ends at the target meanwhile makes
// its revisions new (docs/migration.md).
const shortLease = 6

// load writes as clients do until it is stopped: puts, deletions and transactions, and leases that end.
func load(ctx context.Context, t *testing.T, client *clientv3.Client) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			pace := time.NewTicker(40 * time.Millisecond)
			defer pace.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				<-pace.C
				key, value := fmt.Sprintf("a%d/%d", w, i%20), fmt.Sprint(i)
				_, _ = client.Put(ctx, key, value)
				_, _ = client.Txn(ctx).Then(clientv3.OpPut(key+"x", value), clientv3.OpDelete(key),
					clientv3.OpPut(key+"y", value)).Commit()
				if i%10 == 0 {
					if lease, err := client.Grant(ctx, shortLease); err == nil {
						_, _ = client.Put(ctx, fmt.Sprintf("short%d/%d", w, i), value, clientv3.WithLease(lease.ID))
					}
				}
				if i%15 == 0 {
					_, _ = client.Delete(ctx, fmt.Sprintf("a%d/", w), clientv3.WithPrefix())
				}
			}
		})
	}
	return func() { cancel(); writers.Wait() }
}

// mirror starts `quorate mirror`, which ends with the test.
func (c *cluster) mirror(from, to *node, more ...string) (*exec.Cmd, *bytes.Buffer) {
	c.t.Helper()
	cmd := exec.Command(buildBinary(c.t), append([]string{"mirror", "--from=" + from.client, "--to=" + to.client,
		"--from-user=root:rootpw", "--to-user=root:rootpw"}, more...)...)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // else it may be writing
		if c.t.Failed() {
			c.t.Logf("a mirror said:\n%s", tailOf(out.String(), 2000))
		}
	})
	return cmd, out
}

// events returns what a watcher from a revision on sees, up to another one.
func events(ctx context.Context, t *testing.T, client *clientv3.Client, from, to int64) (all []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for answer := range client.Watch(ctx, "a", clientv3.WithFromKey(), clientv3.WithRev(from)) {
		if err := answer.Err(); err != nil {
			t.Fatal(err)
		}
		for _, e := range answer.Events {
			kv := e.Kv
			if string(kv.Key) == "end" && e.Type == mvccpb.Event_PUT {
				return all
			}
			if kv.ModRevision <= to {
				all = append(all, fmt.Sprintf("%v %q=%q %d %d %d %x", e.Type, kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision,
					kv.Version, kv.Lease))
			}
		}
	}
	t.Fatal("the watch ended")
	return nil
}

// waitFor waits until a key has a value at a cluster.
func waitFor(ctx context.Context, t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	now, err := client.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if len(now.Kvs) > 0 && string(now.Kvs[0].Value) == value {
		return
	}
	for answer := range client.Watch(ctx, key, clientv3.WithRev(now.Header.Revision+1)) {
		for _, e := range answer.Events {
			if string(e.Kv.Value) == value {
				return
			}
		}
	}
	t.Fatalf("%q never got the value %q", key, value)
}

// Ensure that a cluster moves to another one under load, with leases and users, while the mirror and the target are killed:
// no key, lease or user differs, revisions are the same, and a watcher misses no event. With ETCD_BINARY the source is a real
// etcd.
func TestMirror(t *testing.T) {
	t.Parallel()
	var source *cluster
	if os.Getenv("ETCD_BINARY") != "" {
		source = startEtcd(t)
	} else {
		source = startCluster(t, 1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	from := source.nodes[0]
	enableAuth(t, ctx, source.connect(from))
	root := source.login("root", from)
	kept, err := root.Grant(ctx, 30)
	if err != nil {
		t.Fatal(err)
	}
	renewals, err := root.KeepAlive(ctx, kept.ID)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range renewals {
		}
	}()
	first, err := root.Put(ctx, "kept", "v", clientv3.WithLease(kept.ID))
	if err != nil {
		t.Fatal(err)
	}
	stop := load(ctx, t, root)
	target := newCluster(t, 1)
	file := filepath.Join(t.TempDir(), "s.db")
	save := exec.Command(target.binary, "snapshot", "save", file, "--endpoints="+from.client, "--user=root:rootpw")
	if out, err := save.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	target.restore(file)
	to := target.nodes[0]
	target.start(to)
	there := target.login("root", to)
	for i := range 2 {
		running, _ := source.mirror(from, to)
		marker := fmt.Sprint("marker", i)
		if _, err := root.Put(ctx, marker, "1"); err != nil {
			t.Fatal(err)
		}
		waitFor(ctx, t, there, marker, "1")
		if i == 1 {
			to.kill()
			target.start(to)
			if _, err := root.Put(ctx, marker, "2"); err != nil {
				t.Fatal(err)
			}
			waitFor(ctx, t, there, marker, "2")
		}
		_ = running.Process.Kill()
		_ = running.Wait()
	}
	stop()
	last, err := root.Put(ctx, "end", "1")
	if err != nil {
		t.Fatal(err)
	}
	final, out := source.mirror(from, to, "--cutover", "--quiet=1s")
	if err := final.Wait(); err != nil || !strings.Contains(out.String(), "SAFE") ||
		!strings.Contains(out.String(), "revisions: equal") || !strings.Contains(out.String(), "users and roles: equal") {
		t.Fatalf("%v\n%s", err, out)
	}
	want := events(ctx, t, root, first.Header.Revision, last.Header.Revision)
	got := events(ctx, t, there, first.Header.Revision, last.Header.Revision)
	if len(want) < 50 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("a watcher saw %d events at the source and %d at the target", len(want), len(got))
	}
	left, err := there.TimeToLive(ctx, kept.ID, clientv3.WithAttachedKeys())
	if err != nil || left.TTL <= 0 || left.GrantedTTL != 30 || len(left.Keys) != 1 {
		t.Errorf("the lease at the target: %+v, %v", left, err)
	}
}
