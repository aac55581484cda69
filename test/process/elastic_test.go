package process_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/base/testnet"
)

const patience = 20 * time.Second

// until waits for a condition of the running cluster.
func until(t *testing.T, what string, met func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !met(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", patience, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// elastic is a cluster that begins with one member and changes size. Its members talk without proxies.
type elastic struct {
	*cluster
	client *clientv3.Client
	dir    string
	gone   []*node
}

func startElastic(t *testing.T) *elastic {
	t.Helper()
	e := &elastic{cluster: &cluster{t: t, binary: buildBinary(t)}, dir: t.TempDir()}
	t.Cleanup(e.end)
	first := e.node("m1")
	e.nodes = append(e.nodes, first)
	e.launch(first, "new")
	e.waitReady(first)
	e.client = e.quiet(first)
	return e
}

func (e *elastic) end() {
	if e.client != nil {
		_ = e.client.Close()
	}
	for _, n := range append(e.nodes, e.gone...) {
		if n.cmd != nil {
			n.kill()
		}
		if e.t.Failed() {
			e.t.Logf("--- end of %s's log\n%s", n.name, tail(n.log, 2000))
		}
	}
}

func (e *elastic) node(name string) *node {
	e.t.Helper()
	return &node{
		name: name, client: "http://" + testnet.Address(e.t), peer: testnet.Address(e.t),
		dir: filepath.Join(e.dir, name), log: filepath.Join(e.dir, name+".log"),
	}
}

// launch starts n with the members of now as its initial cluster.
func (e *elastic) launch(n *node, state string) {
	e.t.Helper()
	var members []string
	for _, m := range e.nodes {
		members = append(members, m.name+"=http://"+m.peer)
	}
	e.run(n, append([]string{"--name=" + n.name, "--data-dir=" + n.dir, "--listen-client-urls=" + n.client,
		"--advertise-client-urls=" + n.client, "--listen-peer-urls=http://" + n.peer,
		"--initial-advertise-peer-urls=http://" + n.peer, "--initial-cluster=" + strings.Join(members, ","),
		"--initial-cluster-state=" + state, "--heartbeat-interval=50", "--election-timeout=500", inferring,
		// The check that new connections have lasted five seconds would only make the test wait.
		"--strict-reconfig-check=false"}, append(e.flags[:len(e.flags):len(e.flags)], n.flags...)...)...)
}

// quiet is a client of some members that does not print what it retries.
func (e *elastic) quiet(nodes ...*node) *clientv3.Client {
	e.t.Helper()
	var endpoints []string
	for _, n := range nodes {
		endpoints = append(endpoints, n.client)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		e.t.Fatal(err)
	}
	return client
}

// use makes the client talk to the members of now.
func (e *elastic) use() {
	var endpoints []string
	for _, n := range e.nodes {
		endpoints = append(endpoints, n.client)
	}
	e.client.SetEndpoints(endpoints...)
}

// grow adds a voter, starts it and waits until it votes.
func (e *elastic) grow(name string) *node {
	e.t.Helper()
	n := e.node(name)
	added := e.add(n.peer, false)
	e.nodes = append(e.nodes, n)
	e.launch(n, "existing")
	e.waitReady(n)
	e.waitVoter(added)
	e.use()
	return n
}

func (e *elastic) add(peer string, learner bool) (id uint64) {
	e.t.Helper()
	until(e.t, "add "+peer, func(ctx context.Context) bool {
		add := e.client.MemberAdd
		if learner {
			add = e.client.MemberAddAsLearner
		}
		added, err := add(ctx, []string{"http://" + peer})
		if errors.Is(err, rpctypes.ErrPeerURLExist) {
			e.t.Fatal(err)
		}
		if err == nil {
			id = added.Member.ID
		}
		return err == nil
	})
	return id
}

// waitVoter waits until the members tell of a voter in their configuration, by one that lets it vote: the number of
// voters is in the log line of the configuration in force.
func (e *elastic) waitVoter(id uint64) {
	e.t.Helper()
	n := e.nodes[len(e.nodes)-1]
	want := fmt.Sprintf(`"voters":%d,"learners":0`, len(e.nodes))
	until(e.t, fmt.Sprintf("%x votes", id), func(context.Context) bool {
		return strings.Contains(tail(n.log, 1<<20), want)
	})
}

func (e *elastic) leader() *node {
	e.t.Helper()
	var leader *node
	until(e.t, "a leader", func(ctx context.Context) bool {
		for _, n := range e.nodes {
			asked, cancel := context.WithTimeout(ctx, time.Second)
			status, err := e.client.Status(asked, n.client)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

func (e *elastic) status(n *node) *clientv3.StatusResponse {
	e.t.Helper()
	var status *clientv3.StatusResponse
	until(e.t, "status of "+n.name, func(ctx context.Context) bool {
		var err error
		status, err = e.client.Status(ctx, n.client)
		return err == nil
	})
	return status
}

// shrink removes n, asked through n itself, and waits until its process has ended by itself.
func (e *elastic) shrink(n *node) {
	e.t.Helper()
	id := e.status(n).Header.MemberId
	client := e.quiet(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := client.MemberRemove(ctx, id); err != nil {
		e.t.Fatalf("remove %s through itself: %v", n.name, err)
	}
	select {
	case <-n.exited:
	case <-ctx.Done():
		e.t.Fatalf("%s was removed and goes on", n.name)
	}
	if end := tail(n.log, 1000); !strings.Contains(end, "permanently removed from the cluster") {
		e.t.Errorf("the last words of %s: %s", n.name, end)
	}
	for i, other := range e.nodes {
		if other == n {
			e.nodes = append(e.nodes[:i:i], e.nodes[i+1:]...)
			break
		}
	}
	e.gone = append(e.gone, n)
	e.use()
}

// load writes until stop is called, which returns what was acknowledged.
func (e *elastic) load(writers int) (stop func() map[string]string) {
	ctx, cancel := context.WithCancel(context.Background())
	acked := make(map[string]string)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key, value := fmt.Sprintf("load/%d/%06d", w, i), fmt.Sprint(i)
				put, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				_, err := e.client.Put(put, key, value)
				cancel()
				if err == nil {
					mu.Lock()
					acked[key] = value
					mu.Unlock()
				}
			}
		})
	}
	return func() map[string]string {
		cancel()
		wg.Wait()
		return acked
	}
}

// awaitWrites waits until the cluster has made so many more revisions.
func (e *elastic) awaitWrites(more int64) {
	e.t.Helper()
	var begun int64
	until(e.t, fmt.Sprint(more, " more writes"), func(ctx context.Context) bool {
		got, err := e.client.Get(ctx, "any", clientv3.WithCountOnly())
		if err != nil {
			return false
		}
		if begun == 0 {
			begun = got.Header.Revision
		}
		return got.Header.Revision >= begun+more
	})
}

// checkKeys looks for every acknowledged key at n.
func (e *elastic) checkKeys(n *node, acked map[string]string) {
	e.t.Helper()
	client := e.quiet(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := client.Get(ctx, "load/", clientv3.WithPrefix())
	if err != nil {
		e.t.Fatal(err)
	}
	found := make(map[string]string, len(got.Kvs))
	for _, kv := range got.Kvs {
		found[string(kv.Key)] = string(kv.Value)
	}
	for key, value := range acked {
		if found[key] != value {
			e.t.Errorf("%s has %s=%q, acknowledged was %q", n.name, key, found[key], value)
		}
	}
}

// bulk writes count keys, each once, of a size that makes the store flush, so that the log can be compacted.
func (e *elastic) bulk(name string, writers, count int) {
	e.t.Helper()
	value := strings.Repeat("v", 3<<10)
	numbers := make(chan int)
	failed := make(chan error, writers)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range numbers {
				if _, err := e.client.Put(context.Background(), fmt.Sprintf("bulk/%s/%06d", name, i), value); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for i := 0; i < count && err == nil; i++ {
		select {
		case numbers <- i:
		case err = <-failed:
		}
	}
	close(numbers)
	wg.Wait()
	if err != nil {
		e.t.Fatal(err)
	}
}

func signal(t *testing.T, n *node, s syscall.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
