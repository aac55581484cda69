package process_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
)

// TestAddress_movedMember starts a follower at another peer URL: the others learn where it is without a command, and keep it
// over a restart of all of them.
func TestAddress_movedMember(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	moved := e.others(e.leader())[0]
	moved.kill()
	moved.peer = testnet.Address(t)
	e.launch(moved, "existing")
	e.waitReady(moved)
	e.checkVoters()
	for _, n := range e.nodes {
		n.kill()
	}
	for _, n := range e.nodes {
		e.launch(n, "existing")
	}
	for _, n := range e.nodes {
		e.waitReady(n)
	}
	e.checkVoters()
}

// TestAddress_mistyped gives two members wrong URLs in one change, which is refused, and each by etcd's call, of which one
// may be; all start again, and write.
func TestAddress_mistyped(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	two := e.others(e.leader())
	wrong := "http://" + testnet.Address(t)
	e.quorate(1, e.member("change", "--update="+two[0].name+"="+wrong, "--update="+two[1].name+"=http://"+testnet.Address(t),
		"--yes"), "nobody answers at "+wrong)
	first, second := e.status(two[0]).Header.MemberId, e.status(two[1]).Header.MemberId
	if _, err := e.client.MemberUpdate(t.Context(), first, []string{wrong}); err != nil {
		t.Fatalf("etcd's order, update and then move: %v", err)
	}
	if _, err := e.client.MemberUpdate(t.Context(), second, []string{"http://" + testnet.Address(t)}); err == nil {
		t.Error("a second member may be lost, too")
	}
	for _, n := range e.nodes {
		n.kill()
	}
	for _, n := range e.nodes {
		e.launch(n, "existing")
	}
	for _, n := range e.nodes {
		e.waitReady(n)
	}
	e.quorate(0, e.member("list"), "tolerates 1 more failure")
}

// TestAddress_clientPort gives members the usual typo for an address, the client port, in every way that there is: each is refused,
// and the refusal names the port and the right one.
func TestAddress_clientPort(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	two := e.others(e.leader())
	want := "that is a client port of member "
	e.quorate(1, e.member("change", "--update="+two[0].name+"="+two[0].client, "--update="+two[1].name+"="+two[1].client, "--yes"),
		two[0].client+" is a wrong URL: "+want, "its peer URL is http://"+two[0].peer)
	e.quorate(1, e.member("update", two[0].name, "--peer-urls="+two[1].client, "--yes"), want)
	for _, n := range two {
		if _, err := e.client.MemberUpdate(t.Context(), e.status(n).Header.MemberId, []string{n.client}); err == nil {
			t.Errorf("etcd's call gives %s its client port as its peer port", n.name)
		}
	}
	e.checkVoters()
}

// TestAddress_movedWhileOthersAreDown moves two members while the third one is down, so that no member finds another: none
// leads, and no configuration can be changed. The operator tells the stopped members where the others are. Nothing that they
// logged or voted is touched, and the cluster has a leader again, which learns the addresses properly; the third member finds
// them, too.
func TestAddress_movedWhileOthersAreDown(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	stop := e.load(2)
	e.awaitWrites(20)
	acked := stop()
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	for _, n := range e.nodes {
		n.kill()
	}
	one.peer, two.peer = testnet.Address(t), testnet.Address(t)
	line := []string{"m1=http://" + one.peer, "m2=http://" + two.peer}
	set := func(n *node, words ...string) []string {
		return append([]string{"set-address", "--data-dir", n.dir}, words...)
	}
	before := fingerprint(t, two.dir)
	e.quorate(0, set(two), "m1", "MEMBER=URL")
	e.quorate(0, set(two, append(line, "--dry-run")...), "http://"+one.peer+" (does not answer yet)", "dry run")
	e.quorate(1, set(two, line...), "repeat this with --yes")
	e.quorate(1, set(two, "m1=http://"+three.peer, "--yes"), "If m3 has moved, give its new URL")
	e.quorate(2, set(two, "m1", "--yes"), "is not MEMBER=URL")
	e.quorate(1, set(two, "m9="+one.client, "--yes"), "no member is called")
	if _, err := os.Stat(filepath.Join(two.dir, "member", "addresses")); err == nil {
		t.Error("a refused command has told the member something")
	}
	e.quorate(0, set(two, append(line, "--yes")...), "Once there is a leader")
	e.quorate(0, set(two, "m1=", "m2=", "--yes"), "Taken back: what was told of m1, http://"+one.peer)
	if _, err := os.Stat(filepath.Join(two.dir, "member", "addresses")); err == nil {
		t.Error("what was taken back is still told")
	}
	for _, n := range []*node{one, two, three} {
		e.quorate(0, set(n, append(line, "--yes")...), "Once there is a leader")
	}
	if fingerprint(t, two.dir) != before {
		t.Error("more than the addresses was written")
	}

	e.launch(one, "existing")
	e.launch(two, "existing")
	e.waitReady(one)
	e.checkKeys(two, acked)
	e.launch(three, "existing")
	e.waitReady(three)
	e.checkVoters()
	e.quorate(1, set(two), "in use by another process")
	until(t, "m2 forgets what it was told", func(context.Context) bool {
		_, err := os.Stat(filepath.Join(two.dir, "member", "addresses"))
		return os.IsNotExist(err)
	})
	e.checkKeys(three, acked)
}
