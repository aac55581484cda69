package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
)

// joining is a node that joins by the peer URLs of others.
func (e *elastic) joining(n *node, urls string, more ...string) []string {
	return append([]string{"--name=" + n.name, "--data-dir=" + n.dir, "--listen-client-urls=" + n.client,
		"--advertise-client-urls=" + n.client, "--listen-peer-urls=http://" + n.peer, "--join=" + urls,
		"--initial-advertise-peer-urls=http://" + n.peer, "--heartbeat-interval=50", "--election-timeout=500", inferring,
		"--strict-reconfig-check=false"}, append(e.flags[:len(e.flags):len(e.flags)], more...)...)
}

// startFirst starts the one member of a cluster.
func startFirst(t *testing.T) *elastic {
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

// members gives the names of those in the list, once it is as long as wanted.
func (e *elastic) members(want int) []string {
	e.t.Helper()
	var names []string
	until(e.t, "the list of members", func(ctx context.Context) bool {
		list, err := e.client.MemberList(ctx)
		names = nil
		if err != nil {
			return false
		}
		for _, m := range list.Members {
			names = append(names, m.Name)
		}
		return len(names) == want && !strings.Contains(" "+strings.Join(names, " ")+" ", "  ")
	})
	return names
}

func (e *elastic) waitLog(n *node, word string) {
	e.t.Helper()
	until(e.t, n.name+" logs "+word, func(context.Context) bool { return strings.Contains(tail(n.log, 1<<20), word) })
}

// TestJoin grows a cluster by --join alone: through a member that does not lead, with a list that names itself and one
// that does not run, as a learner, in a member's place, and again with the same flags.
func TestJoin(t *testing.T) {
	t.Parallel()
	e := startFirst(t)
	first := e.nodes[0]
	var acked map[string]string
	for _, name := range []string{"m2", "m3"} {
		n := e.node(name)
		last := e.nodes[len(e.nodes)-1]
		e.nodes = append(e.nodes, n)
		e.run(n, e.joining(n, "http://"+testnet.Address(t)+",http://"+n.peer+",http://"+last.peer)...)
		e.waitReady(n)
		e.waitVoter(e.status(n).Header.MemberId)
		acked = e.fill(n)
	}
	two := e.nodes[1]
	two.kill()
	e.run(two, e.joining(two, "http://127.0.0.1:1")...)
	e.waitReady(two)
	e.checkKeys(two, acked)
	e.waitLog(two, "--join is ignored")

	two.kill()
	lost := two.dir
	if err := os.RemoveAll(lost); err != nil {
		t.Fatal(err)
	}
	from := logSize(two)
	e.run(two, e.joining(two, "http://"+first.peer)...)
	e.awaitLog(two, from, "`quorate member reset m2` from any member that serves")
	two.kill()
	heir := e.node("m4")
	e.nodes = []*node{first, e.nodes[2], heir}
	e.run(heir, e.joining(heir, "http://"+first.peer, "--replaces=m2")...)
	e.waitReady(heir)
	e.use()
	until(t, "m2 is replaced", func(ctx context.Context) bool {
		names := strings.Join(e.members(3), " ")
		return strings.Contains(names, "m4") && !strings.Contains(names, "m2")
	})
	e.checkKeys(heir, acked)

	learner := e.node("l1")
	e.run(learner, e.joining(learner, "http://"+first.peer, "--join-learner")...)
	e.gone = append(e.gone, learner) // not one of the voters
	e.waitLog(learner, "ready to serve client requests")
	until(t, "one learner of four members, at whichever is asked", func(ctx context.Context) bool {
		list, err := e.client.MemberList(ctx, clientv3.WithSerializable())
		return err == nil && len(list.Members) == 4 &&
			!slices.ContainsFunc(list.Members, func(m *etcdserverpb.Member) bool { return m.IsLearner != (m.Name == "l1") })
	})
}

// TestJoin_set starts members as a StatefulSet does, each with the same lists: two found the cluster, the third one joins it, and
// so does a founder that was removed and has an empty directory. A founder that only lost its disk joins nothing.
func TestJoin_set(t *testing.T) {
	t.Parallel()
	e := &elastic{cluster: &cluster{t: t, binary: buildBinary(t)}, dir: t.TempDir()}
	t.Cleanup(e.end)
	var urls []string
	for _, name := range []string{"m-0", "m-1", "m-2"} {
		n := e.node(name)
		e.nodes = append(e.nodes, n)
		urls = append(urls, "http://"+n.peer)
	}
	founders := "--initial-cluster=m-0=" + urls[0] + ",m-1=" + urls[1]
	start := func(n *node) {
		e.run(n, e.joining(n, strings.Join(urls, ","), founders, "--initial-cluster-state=new")...)
	}
	for _, n := range e.nodes {
		start(n)
	}
	for _, n := range e.nodes {
		e.waitReady(n)
	}
	e.client = e.quiet(e.nodes...)
	e.members(3)
	e.waitVoter(e.status(e.nodes[2]).Header.MemberId) // two voters would not outlive the loss of one
	acked := e.fill(e.nodes[2])

	one := e.nodes[1]
	wipe := func() {
		if err := os.RemoveAll(one.dir); err != nil {
			t.Fatal(err)
		}
	}
	one.kill()
	wipe()
	from := logSize(one)
	start(one)
	e.awaitLog(one, from, "`quorate member reset m-1` from any member that serves")
	one.kill()
	e.finish(e.begin(e.member("remove", "m-1", "--yes")...), 0)
	wipe()
	from = logSize(one)
	start(one)
	e.awaitLog(one, from, "joining a cluster")
	e.waitReady(one)
	e.members(3)
	e.checkKeys(one, acked)
	one.kill()
	start(one)
	e.waitReady(one)
}

// TestJoin_setFoundersLost takes the disks of all founders at once from a set that has grown to five. They found no second
// cluster beside the members that joined, whether these are a majority or not. If they are, each founder comes back by a reset.
func TestJoin_setFoundersLost(t *testing.T) {
	t.Parallel()
	for _, founders := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d founders", founders), func(t *testing.T) {
			t.Parallel()
			loseFounders(t, founders)
		})
	}
}

func loseFounders(t *testing.T, founders int) {
	e := &elastic{cluster: &cluster{t: t, binary: buildBinary(t)}, dir: t.TempDir()}
	t.Cleanup(e.end)
	var urls, pairs []string
	for i := range 5 {
		n := e.node(fmt.Sprintf("m-%d", i))
		e.nodes = append(e.nodes, n)
		urls, pairs = append(urls, "http://"+n.peer), append(pairs, n.name+"=http://"+n.peer)
	}
	start := func(n *node) {
		e.run(n, e.joining(n, strings.Join(urls, ","), "--initial-cluster="+strings.Join(pairs[:founders], ","),
			"--initial-cluster-state=new")...)
	}
	for _, n := range e.nodes {
		start(n)
	}
	for _, n := range e.nodes {
		e.waitReady(n)
	}
	e.client = e.quiet(e.nodes...)
	e.members(5)
	e.waitVoter(e.status(e.nodes[4]).Header.MemberId)
	acked := e.fill(e.nodes[4])

	lost, left := e.nodes[:founders], e.nodes[founders:]
	made := func(n *node) bool {
		_, err := os.Stat(filepath.Join(n.dir, "member", "wal"))
		return err == nil
	}
	for _, n := range lost {
		if n.kill(); !made(n) {
			t.Fatalf("%s has its data elsewhere", n.name)
		}
		e.wipe(n)
	}
	from := make([]int64, founders)
	for i, n := range lost {
		from[i] = logSize(n)
		start(n)
	}
	for i, n := range lost {
		e.awaitLog(n, from[i], "has lost its disk")
		if made(n) {
			t.Errorf("%s made data of its own beside the members that are left", n.name)
		}
	}
	if 2*len(left) < len(e.nodes) {
		return
	}
	for _, n := range lost {
		e.reset(n, left[0])
		e.waitReady(n)
		e.checkKeys(n, acked)
	}
	e.members(5)
}

// TestJoin_refused joins where that cannot be: one line says why, and what to do.
func TestJoin_refused(t *testing.T) {
	t.Parallel()
	e := startFirst(t)
	first := e.nodes[0]
	n := e.node("m2")
	e.quorate(1, e.joining(n, first.client), "that is a client port of member")
	e.quorate(1, e.joining(n, "http://"+first.peer, "--replaces=m9"), "m9", "start this process without --replaces")
	e.quorate(1, e.joining(n, "https://"+first.peer), "TLS")
	e.quorate(2, e.joining(e.node("m3"), "http://"+first.peer, "--initial-cluster-state=new"), "exclude each other")
	other := startFirst(t).nodes[0]
	other.kill()
	e.quorate(1, e.joining(other, "http://"+first.peer), "correct or remove --join, or correct --data-dir")
	if names := e.members(1); len(names) != 1 {
		t.Errorf("got %v: a refused joiner was added", names)
	}
}

// TestJoin_waits starts the joiner before the cluster that it joins.
func TestJoin_waits(t *testing.T) {
	t.Parallel()
	e := &elastic{cluster: &cluster{t: t, binary: buildBinary(t)}, dir: t.TempDir()}
	t.Cleanup(e.end)
	first, second := e.node("m1"), e.node("m2")
	e.gone = []*node{second}
	e.run(second, e.joining(second, "http://"+first.peer)...)
	e.waitLog(second, "waiting to join a cluster")
	begun := time.Now()
	e.nodes = []*node{first}
	e.launch(first, "new")
	e.waitReady(first)
	e.client = e.quiet(first)
	e.waitReady(second)
	t.Logf("joined %v after the cluster was there", time.Since(begun))
	e.members(2)
}
