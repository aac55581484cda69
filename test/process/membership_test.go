package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
)

// TestMembership_grow_and_shrink goes from one member to five and back to one under load. Always the leader is
// removed, asked through itself, and no acknowledged write is lost.
func TestMembership_grow_and_shrink(t *testing.T) {
	t.Parallel()
	e := startElastic(t)
	stop := e.load(4)
	for i := 2; i <= 5; i++ {
		e.grow(fmt.Sprintf("m%d", i))
	}
	for len(e.nodes) > 1 {
		e.shrink(e.leader())
	}
	last := e.nodes[0]
	e.awaitWrites(100)
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

// TestMembership_removedWhileDown removes a member that is stopped: it is told so when it comes back, although nothing that it says
// is heard any more, and ends.
func TestMembership_removedWhileDown(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	e.lead(e.nodes[0])
	away := e.nodes[2]
	id := e.status(away).Header.MemberId
	away.kill()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := e.quiet(e.nodes[0]).MemberRemove(ctx, id); err != nil {
		t.Fatal(err)
	}
	for _, n := range e.nodes[:2] { // so that no leader feeds it, as one that leaves, any more
		n.kill()
		e.launch(n, "existing")
	}
	e.waitReady(e.nodes[0])
	e.launch(away, "existing")
	e.waitRemoved(away)
}

// TestMembership_mistyped adds voters that no operator will ever start: writes go on, and the repair works.
func TestMembership_mistyped(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	e := startElastic(t)
	e.grow("m2")
	behind := e.grow("m3")
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	e.lead(e.nodes[0])
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
