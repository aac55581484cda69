package process_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/client"
)

// login connects as a user.
func (c *cluster) login(user string, nodes ...*node) *clientv3.Client {
	c.t.Helper()
	config := clientv3.Config{DialTimeout: 5 * time.Second, Username: user, Password: user + "pw"}
	for _, n := range nodes {
		config.Endpoints = append(config.Endpoints, n.client)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		connected, err := clientv3.New(config)
		if err == nil {
			c.t.Cleanup(func() { connected.Close() })
			return connected
		}
		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
	}
}

// enableAuth makes root, and alice with the role some, which permits a..b, and enables authentication.
func enableAuth(t *testing.T, ctx context.Context, c *clientv3.Client) {
	t.Helper()
	for _, do := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "rootpw"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "alice", "alicepw"); return err },
		func() error { _, err := c.RoleAdd(ctx, "some"); return err },
		func() error { return permit(ctx, c) },
		func() error { _, err := c.UserGrantRole(ctx, "alice", "some"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}

func permit(ctx context.Context, c *clientv3.Client) error {
	_, err := c.RoleGrantPermission(ctx, "some", "a", "b", clientv3.PermissionType(clientv3.PermReadWrite))
	return err
}

// attempt is a write by alice.
type attempt struct {
	call, end time.Time
	ok        bool
}

// attempts are those of all of alice's clients.
type attempts struct {
	mu    sync.Mutex
	list  []attempt
	count atomic.Int64
}

func (a *attempts) run(ctx context.Context, t *testing.T, put func(ctx context.Context, key, value string) error) {
	for i := 0; ctx.Err() == nil; i++ {
		one := attempt{call: time.Now()}
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := put(bounded, fmt.Sprint("a", i%10), fmt.Sprint(i))
		cancel()
		one.end, one.ok = time.Now(), err == nil
		a.mu.Lock()
		a.list = append(a.list, one)
		a.mu.Unlock()
		a.count.Add(1)
	}
}

// more waits until so many more attempts have ended.
func (a *attempts) more(t *testing.T, n int64) {
	t.Helper()
	until, tick := a.count.Load()+n, time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(60 * time.Second); a.count.Load() < until; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d writes ended", n-until+a.count.Load(), n)
		}
	}
}

// Ensure that no write succeeds that was called after a permission was revoked and ended before it was granted again: at every
// member, by etcd's client and by the native one, on the fast path, while leaders are killed. Afterwards all members hold the same.
func TestAuth_permissionsUnderLoad(t *testing.T) {
	c := startCluster(t, 3, "--fast-path=always")
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	first := c.connect(c.nodes...)
	defer first.Close()
	enableAuth(t, ctx, first)
	root := c.login("root", c.nodes...)

	var all attempts
	load, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for _, n := range c.nodes {
		plain := c.login("alice", n)
		writers.Go(func() {
			all.run(load, t, func(ctx context.Context, key, value string) error { _, err := plain.Put(ctx, key, value); return err })
		})
	}
	var endpoints []string
	for _, n := range c.nodes {
		endpoints = append(endpoints, n.client)
	}
	native, err := client.New(client.Config{Endpoints: endpoints, Username: "alice", Password: "alicepw"})
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	writers.Go(func() {
		all.run(load, t, func(ctx context.Context, key, value string) error { _, err := native.Put(ctx, key, value); return err })
	})

	var forbidden []attempt // from the answer to the revocation to the call of the grant
	again := func(do func() error, harmless error) {
		for {
			err := do()
			if err == nil || errors.Is(err, harmless) {
				return
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	for round := range 6 {
		all.more(t, 40)
		again(func() error { _, err := root.RoleRevokePermission(ctx, "some", "a", "b"); return err }, rpctypes.ErrPermissionNotGranted)
		since := time.Now()
		all.more(t, 40)
		if round%3 == 1 {
			c.kill9Leader(t, ctx, root)
			all.more(t, 20)
		}
		forbidden = append(forbidden, attempt{call: since, end: time.Now()})
		again(func() error { return permit(ctx, root) }, nil)
	}
	all.more(t, 40)
	stop()
	writers.Wait()

	succeeded, refused := 0, 0
	for _, one := range all.list {
		for _, span := range forbidden {
			if one.call.After(span.call) && one.end.Before(span.end) {
				refused++
				if one.ok {
					t.Errorf("a write succeeded %v after the permission was revoked", one.call.Sub(span.call))
				}
			}
		}
		if one.ok {
			succeeded++
		}
	}
	if succeeded < 100 || refused < 100 {
		t.Errorf("%d writes succeeded, %d were forbidden: too few to tell", succeeded, refused)
	}
	now, err := root.Get(ctx, "any")
	if err != nil {
		t.Fatal(err)
	}
	revision := now.Header.Revision
	want := c.hashes(t, ctx, root, revision)
	for _, n := range c.nodes {
		n.kill()
		c.start(n)
	}
	root = c.login("root", c.nodes...)
	// A write whose caller gave up may still be decided, so a revision after that one proves nothing.
	if got := c.hashes(t, ctx, root, revision); got != want {
		t.Errorf("after a restart of all the hash at revision %d is %d, before it was %d", revision, got, want)
	}
	alice := c.login("alice", c.nodes...)
	if _, err := alice.Put(ctx, "z", "v"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("after a restart of all a secret is written: %v", err)
	}
	if _, err := alice.Put(ctx, "a1", "v"); err != nil {
		t.Errorf("after a restart of all: %v", err)
	}
}

// kill9Leader kills the leader and starts it again.
func (c *cluster) kill9Leader(t *testing.T, ctx context.Context, root *clientv3.Client) {
	t.Helper()
	for _, n := range c.nodes {
		status, err := root.Status(ctx, n.client)
		if err == nil && status.Leader == status.Header.MemberId {
			n.kill()
			c.start(n)
			return
		}
	}
}

// hashes wants equal hashes of all members at one revision, and returns that hash.
func (c *cluster) hashes(t *testing.T, ctx context.Context, root *clientv3.Client, revision int64) uint32 {
	t.Helper()
	var first uint32
	for i, n := range c.nodes {
		deadline, tick := time.Now().Add(30*time.Second), time.NewTicker(50*time.Millisecond)
		for {
			hash, err := root.HashKV(ctx, n.client, revision)
			if err == nil {
				if i > 0 && hash.Hash != first {
					t.Errorf("%s has hash %d at revision %d, the first has %d", n.name, hash.Hash, revision, first)
				}
				first = hash.Hash
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			<-tick.C
		}
		tick.Stop()
	}
	return first
}
