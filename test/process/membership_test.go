package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/testnet"
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
	if end := tail(n.log, 300); !strings.Contains(end, "permanently removed from the cluster") {
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

// TestMembership_grow_and_shrink goes from one member to five and back to one under load. Always the leader is
// removed, asked through itself, and no acknowledged write is lost.
func TestMembership_grow_and_shrink(t *testing.T) {
	e := startElastic(t)
	stop := e.load(4)
	for i := 2; i <= 5; i++ {
		e.grow(fmt.Sprintf("m%d", i))
	}
	for len(e.nodes) > 1 {
		e.shrink(e.leader())
	}
	last := e.nodes[0]
	acked := stop()
	if len(acked) < 100 {
		t.Errorf("only %d writes were acknowledged", len(acked))
	}
	e.checkKeys(last, acked)
	t.Logf("%d writes, last term %d", len(acked), e.status(last).RaftTerm)

	again := e.gone[0]
	e.launch(again, "existing")
	select {
	case <-again.exited:
	case <-time.After(patience):
		t.Fatal("a removed member runs again")
	}
	back := e.node(again.name + "b")
	back.peer = again.peer
	e.add(back.peer, false)
	e.nodes = append(e.nodes, back)
	e.launch(back, "existing")
	e.waitReady(back)
	e.checkKeys(back, acked)
}

// TestMembership_mistyped adds voters that nobody will ever start: writes go on, and the repair works.
func TestMembership_mistyped(t *testing.T) {
	e := startElastic(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, size := range []int{1, 3} {
		for len(e.nodes) < size {
			e.grow(fmt.Sprintf("m%d", len(e.nodes)+1))
		}
		id := e.add(testnet.Address(t), false)
		begun := time.Now()
		if _, err := e.client.Put(ctx, "after", "mistyped"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.client.MemberRemove(ctx, id); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d members: put and repair took %v", size, time.Since(begun))
		list, err := e.client.MemberList(ctx)
		if err != nil || len(list.Members) != size {
			t.Errorf("got %v, %v; want %d members", list, err, size)
		}
	}
}

// TestMembership_join_refused starts members that cannot join: each ends with one line that says why.
func TestMembership_join_refused(t *testing.T) {
	e := startElastic(t)
	joiner := e.node("joiner")
	unreachable := e.node("unreachable")
	first := e.nodes[0]
	rows := []struct {
		name    string
		cluster []*node
		added   bool
		want    string
	}{
		{"nobody added it", []*node{first, joiner}, false, "add it first with `etcdctl member add joiner"},
		{"nobody answers", []*node{unreachable, joiner}, false, "no member of --initial-cluster answers"},
		{"it names too many", []*node{first, unreachable, joiner}, true, "member count is unequal"},
	}
	for _, row := range rows {
		if row.added {
			e.add(joiner.peer, false)
		}
		e.nodes = row.cluster
		e.launch(joiner, "existing")
		select {
		case <-joiner.exited:
		case <-time.After(patience):
			t.Fatalf("%s: it runs", row.name)
		}
		joiner.cmd = nil
		lines := strings.Split(strings.TrimSpace(tail(joiner.log, 1<<16)), "\n")
		if got := lines[len(lines)-1]; !strings.HasPrefix(got, "quorate: cannot join") || !strings.Contains(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
		if err := os.RemoveAll(joiner.dir); err != nil {
			t.Fatal(err)
		}
	}
	e.nodes = []*node{first}
}

// TestMembership_learner promotes a learner by hand, and not before it is there.
func TestMembership_learner(t *testing.T) {
	e := startElastic(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n := e.node("m2")
	id := e.add(n.peer, true)
	if _, err := e.client.MemberPromote(ctx, id); !errors.Is(err, rpctypes.ErrMemberLearnerNotReady) {
		t.Errorf("promoting a member that is not there: got %v", err)
	}
	e.nodes = append(e.nodes, n)
	e.launch(n, "existing")
	until(t, "the learner says what it is", func(ctx context.Context) bool {
		status, err := e.client.Status(ctx, n.client)
		return err == nil && status.IsLearner && status.Leader != 0
	})
	until(t, "promoted", func(ctx context.Context) bool {
		_, err := e.client.MemberPromote(ctx, id)
		return err == nil
	})
	until(t, "the new voter says what it is", func(ctx context.Context) bool {
		status, err := e.client.Status(ctx, n.client)
		return err == nil && !status.IsLearner
	})
}

// TestMembership_snapshot leaves a follower behind by more than the log keeps, so that it catches up by a snapshot while
// writes go on, and looks at a watch and a lease that go on through it.
func TestMembership_snapshot(t *testing.T) {
	e := startElastic(t)
	e.grow("m2")
	behind := e.grow("m3")
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if leader := e.leader(); leader == behind {
		moved := e.quiet(leader)
		defer moved.Close()
		if _, err := moved.MoveLeader(ctx, e.status(e.nodes[0]).Header.MemberId); err != nil {
			t.Fatal(err)
		}
	}
	granted, err := e.client.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	watcher := e.quiet(behind)
	defer watcher.Close()
	watch := watcher.Watch(ctx, "bulk/", clientv3.WithPrefix(), clientv3.WithRev(1))
	e.client.SetEndpoints(e.nodes[0].client, e.nodes[1].client)

	signal(t, behind, syscall.SIGSTOP)
	e.bulk("away", 64, 20_000)
	stop := e.load(4)
	signal(t, behind, syscall.SIGCONT)
	until(t, "a snapshot is installed", func(context.Context) bool {
		return strings.Contains(tail(behind.log, 1<<16), "installed a snapshot")
	})
	e.bulk("back", 4, 100)
	acked := stop()
	last, seen := int64(0), make(map[string]int)
	for response := range watch {
		if response.Err() != nil {
			t.Fatal(response.Err())
		}
		for _, event := range response.Events {
			if event.Kv.ModRevision < last {
				t.Fatalf("the watch went back from %d to %d", last, event.Kv.ModRevision)
			}
			last = event.Kv.ModRevision
			seen[string(event.Kv.Key)]++
		}
		if len(seen) == 20_100 {
			break
		}
	}
	if len(seen) != 20_100 {
		t.Errorf("the watch saw %d keys, want 20100: %v", len(seen), ctx.Err())
	}
	for key, times := range seen {
		if times != 1 {
			t.Errorf("the watch saw %s %d times", key, times)
		}
	}
	e.checkKeys(behind, acked)
	if _, err := watcher.KeepAliveOnce(ctx, granted.ID); err != nil {
		t.Errorf("renew a lease through the member that installed a snapshot: %v", err)
	}
}

// bulk writes count keys, each once, of a size that makes the store flush, so that the log can be compacted.
func (e *elastic) bulk(name string, writers, count int) {
	e.t.Helper()
	value := strings.Repeat("v", 1024)
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

// TestLeadership_stopped stops leaders gracefully, by kill and by pause. Each time the cluster goes on with another
// one; a leader that goes in peace hands over within a term.
func TestLeadership_stopped(t *testing.T) {
	e := startElastic(t)
	e.grow("m2")
	e.grow("m3")
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGSTOP} {
		old := e.leader()
		before := e.status(old).RaftTerm
		var others []*node
		for _, n := range e.nodes {
			if n != old {
				others = append(others, n)
			}
		}
		client := e.quiet(others...)
		begun := time.Now()
		signal(t, old, how)
		until(t, "a write after "+how.String(), func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			status, err := client.Status(ctx, others[0].client)
			if err != nil || status.RaftTerm == before || status.Leader == 0 {
				return false
			}
			_, err = client.Put(ctx, "after", how.String())
			return err == nil
		})
		status := e.status(others[0])
		t.Logf("%v: a write in a new term after %v", how, time.Since(begun))
		if how == syscall.SIGTERM && status.RaftTerm != before+1 {
			t.Errorf("a leader that handed over left term %d, now it is %d", before, status.RaftTerm)
		}
		_ = client.Close()
		if how == syscall.SIGSTOP {
			signal(t, old, syscall.SIGCONT)
		} else {
			<-old.exited
			e.launch(old, "existing")
		}
		e.waitReady(old)
	}
}

// TestMembership_all_killed loses the quorum, gets it back, and then loses all members at once, more than once.
func TestMembership_all_killed(t *testing.T) {
	e := startElastic(t)
	e.grow("m2")
	e.grow("m3")
	stop := e.load(4)
	for range 3 {
		for _, n := range e.nodes[1:] {
			n.kill()
		}
		until(t, "the member that is left knows no leader", func(ctx context.Context) bool {
			status, err := e.client.Status(ctx, e.nodes[0].client)
			return err == nil && status.Leader == 0
		})
		e.nodes[0].kill()
		for _, n := range e.nodes {
			e.launch(n, "existing")
		}
		for _, n := range e.nodes {
			e.waitReady(n)
		}
	}
	acked := stop()
	for _, n := range e.nodes {
		e.checkKeys(n, acked)
	}
}
