package process_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// TestUpgrade_snapshotsBothWays makes two builds send each other snapshots while the cluster is mixed: a leader of the new build to
// a follower of the former one, and the other way round. The store has what a store may have: keys of leases, large values, users.
// Each time a watch at the follower sees every event once, the lease is renewed there, and all members have the same contents.
func TestUpgrade_snapshotsBothWays(t *testing.T) {
	t.Parallel()
	next := anotherBinary(t, nextBuild)
	e := startVoters(t, 3, "--level-policy=hold", "--compact-hash-check-time=1s")
	e.use()
	for _, n := range e.nodes {
		e.waitPublished(n)
	}
	e.awaitLevel(ownLevel)
	m := &mixed{elastic: e, random: rand.New(rand.NewPCG(1, 0))}
	upgraded, former := e.nodes[0], e.nodes[1:]
	e.moveTo(upgraded, next, m.random)
	m.fill()

	m.sendSnapshot(upgraded, former[0])
	m.checkFollower(former[0])
	m.sendSnapshot(former[1], upgraded)
	m.checkFollower(upgraded)

	if s := e.upgradeStatus(); s.GetActive() != ownLevel || s.GetCommon() != ownLevel {
		t.Errorf("the cluster is not mixed any more: %v", s)
	}
	m.checkLogins()
	m.checkLeaseEnds()
}

// mixed is a cluster of two builds, and what clients have put into it.
type mixed struct {
	*elastic
	random *rand.Rand
	lease  clientv3.LeaseID
	large  map[string]string // the last value of each large key
	sent   int               // snapshots that were forced
}

const (
	largeKeys   = 8
	largeRounds = 12 // of all large keys, of a megabyte each: more than members keep of the log
)

// fill writes a lease with keys, a deleted key, and users.
func (m *mixed) fill() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	granted, err := m.client.Grant(ctx, 600)
	if err != nil {
		m.t.Fatal(err)
	}
	m.lease, m.large = granted.ID, map[string]string{}
	for _, do := range []func() error{
		func() error { _, err := m.client.Put(ctx, "leased/1", "", clientv3.WithLease(m.lease)); return err },
		func() error { _, err := m.client.Put(ctx, "leased/2", "", clientv3.WithLease(m.lease)); return err },
		func() error { _, err := m.client.Put(ctx, "gone", "x"); return err },
		func() error { _, err := m.client.Delete(ctx, "gone"); return err },
		func() error { _, err := m.client.UserAdd(ctx, "root", "rootpw"); return err },
		func() error { _, err := m.client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := m.client.UserAdd(ctx, "alice", "alicepw"); return err },
		func() error { _, err := m.client.RoleAdd(ctx, "reader"); return err },
		func() error {
			_, err := m.client.RoleGrantPermission(ctx, "reader", "large/", "large0", clientv3.PermissionType(clientv3.PermRead))
			return err
		},
		func() error { _, err := m.client.UserGrantRole(ctx, "alice", "reader"); return err },
	} {
		if err := do(); err != nil {
			m.t.Fatal(err)
		}
	}
}

// putLarge writes all large keys, again and again.
func (m *mixed) putLarge(client *clientv3.Client) {
	m.t.Helper()
	for i := range largeKeys * largeRounds {
		noise := make([]byte, 1<<20) // does not compress
		for j := range noise {
			noise[j] = byte(m.random.Uint32())
		}
		key := fmt.Sprint("large/", i%largeKeys)
		m.large[key] = string(noise)
		until(m.t, "put "+key, func(ctx context.Context) bool {
			_, err := client.Put(ctx, key, m.large[key])
			return err == nil
		})
	}
}

// sendSnapshot makes the leader send behind a snapshot, and checks that a watch at behind goes on through it.
func (m *mixed) sendSnapshot(leader, behind *node) {
	m.t.Helper()
	m.sent++
	watcher, writer := m.quiet(behind), m.quiet(m.others(behind)...)
	defer watcher.Close()
	defer writer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	defer cancel()
	watch := watcher.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(1))
	sent, installed := logged(leader, "sent a snapshot"), logged(behind, "installed a snapshot")
	signal(m.t, behind, syscall.SIGSTOP)
	m.client.SetEndpoints(leader.client) // none that stands still
	m.lead(leader, behind)
	m.putLarge(writer)
	if now := m.leaderOf(m.others(behind)...); now != leader {
		m.lead(leader, behind) // it lost its place over the writes
	}
	signal(m.t, behind, syscall.SIGCONT)
	until(m.t, leader.name+" has sent a snapshot and "+behind.name+" has installed it", func(context.Context) bool {
		return logged(leader, "sent a snapshot") > sent && logged(behind, "installed a snapshot") > installed
	})
	m.use()
	end, err := m.client.Put(ctx, "end", fmt.Sprint(m.sent))
	if err != nil {
		m.t.Fatal(err)
	}
	m.checkEvents(watch, end.Header.Revision)
}

// logged is how often a member has logged words.
func logged(n *node, words string) int { return strings.Count(tail(n.log, 1<<24), words) }

// leaderOf is the leader among members that are not stopped.
func (m *mixed) leaderOf(among ...*node) *node {
	m.t.Helper()
	var leader *node
	until(m.t, "a leader", func(ctx context.Context) bool {
		for _, n := range among {
			asked, cancel := context.WithTimeout(ctx, time.Second)
			status, err := m.client.Status(asked, n.client)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				leader = n
			}
		}
		return leader != nil
	})
	return leader
}

// lead makes a member lead while another one is stopped.
func (m *mixed) lead(wanted, stopped *node) {
	m.t.Helper()
	id := m.status(wanted).Header.MemberId
	until(m.t, wanted.name+" leads", func(ctx context.Context) bool {
		now := m.leaderOf(m.others(stopped)...)
		if now == wanted {
			return true
		}
		client := m.quiet(now)
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, _ = client.MoveLeader(ctx, id)
		return false
	})
}

// checkEvents reads a watch of all keys up to a revision: every version of each key must come once, in order.
func (m *mixed) checkEvents(watch clientv3.WatchChan, end int64) {
	m.t.Helper()
	versions, last := map[string]int64{}, int64(0)
	for answer := range watch {
		if err := answer.Err(); err != nil {
			m.t.Fatal(err)
		}
		for _, event := range answer.Events {
			key := string(event.Kv.Key)
			versions[key]++
			if event.Type == clientv3.EventTypePut && event.Kv.Version != versions[key] || event.Kv.ModRevision <= last {
				m.t.Errorf("%s version %d at %d, as the %d. event, after %d", key, event.Kv.Version, event.Kv.ModRevision,
					versions[key], last)
			}
			last = event.Kv.ModRevision
		}
		if last >= end {
			return
		}
	}
	m.t.Fatalf("the watch ends at %d, and not at %d", last, end)
}

// checkFollower looks at what a member has after a snapshot, and compares it with the others.
func (m *mixed) checkFollower(n *node) {
	m.t.Helper()
	client := m.quiet(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for key, want := range m.large {
		got, err := client.Get(ctx, key, clientv3.WithSerializable())
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != want {
			m.t.Errorf("%s at %s: it is gone or different, %v", key, n.name, err)
		}
	}
	if _, err := client.KeepAliveOnce(ctx, m.lease); err != nil {
		m.t.Errorf("renew a lease at %s: %v", n.name, err)
	}
	lease, err := client.TimeToLive(ctx, m.lease, clientv3.WithAttachedKeys())
	if err != nil || len(lease.Keys) != 2 || lease.GrantedTTL != 600 {
		m.t.Errorf("the lease at %s: %v, %v", n.name, lease, err)
	}
	users, err := client.UserList(ctx)
	if err != nil || !slices.Equal(users.Users, []string{"alice", "root"}) {
		m.t.Errorf("the users at %s: %v, %v", n.name, users, err)
	}
	role, err := client.RoleGet(ctx, "reader")
	if err != nil || len(role.Perm) != 1 || string(role.Perm[0].Key) != "large/" {
		m.t.Errorf("the role at %s: %v, %v", n.name, role, err)
	}
	m.checkHashes()
	m.checkChains()
}

// checkChains waits until the leader has compared what the members applied once more, users and leases included.
func (m *mixed) checkChains() {
	m.t.Helper()
	leader := m.leader()
	compared := func() (n int) {
		_, after, _ := strings.Cut(m.metrics(leader), "\nquorate_integrity_comparisons_total ")
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	begun := compared()
	until(m.t, "the chains are compared", func(context.Context) bool { return compared() > begun })
	if !strings.Contains(m.metrics(leader), "\nquorate_integrity_differences_total 0\n") {
		m.t.Errorf("members applied what differs")
	}
}

// checkLogins enables authentication: each member knows the passwords and the roles.
func (m *mixed) checkLogins() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if _, err := m.client.AuthEnable(ctx); err != nil {
		m.t.Fatal(err)
	}
	as := func(n *node, user string) *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{n.client}, Username: user, Password: user + "pw",
			Logger: zap.NewNop(), DialTimeout: patience})
		if err != nil {
			m.t.Fatalf("%s at %s: %v", user, n.name, err)
		}
		return client
	}
	for _, n := range m.nodes {
		alice := as(n, "alice")
		got, err := alice.Get(ctx, "large/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || got.Count != largeKeys {
			m.t.Errorf("alice reads at %s: %v, %v", n.name, got, err)
		}
		if _, err := alice.Put(ctx, "large/1", "x"); err == nil {
			m.t.Errorf("alice writes at %s", n.name)
		}
		_ = alice.Close()
	}
	root := as(m.nodes[0], "root")
	defer root.Close()
	if _, err := root.AuthDisable(ctx); err != nil {
		m.t.Fatal(err)
	}
}

// checkLeaseEnds revokes the lease: its keys are gone everywhere, and nothing else is.
func (m *mixed) checkLeaseEnds() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := m.client.Revoke(ctx, m.lease); err != nil {
		m.t.Fatal(err)
	}
	for _, n := range m.nodes {
		client := m.quiet(n)
		got, err := client.KV.Do(ctx, clientv3.OpGet("", clientv3.WithPrefix(), clientv3.WithKeysOnly()))
		_ = client.Close()
		if err != nil || slices.ContainsFunc(got.Get().Kvs, func(kv *mvccpb.KeyValue) bool {
			return strings.HasPrefix(string(kv.Key), "leased/")
		}) || got.Get().Count != largeKeys+1 {
			m.t.Errorf("keys at %s after the lease: %v, %v", n.name, got.Get(), err)
		}
	}
	m.checkHashes()
}
