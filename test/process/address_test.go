package process_test

import (
	"testing"
)

// TestAddress_movedMember starts a follower at another peer URL: the others learn where it is without a command, and keep it
// over a restart of all of them.
func TestAddress_movedMember(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	moved := e.others(e.leader())[0]
	moved.kill()
	moved.peer = rangedAddress(t)
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
	wrong := "http://" + rangedAddress(t)
	e.quorate(1, e.member("change", "--update="+two[0].name+"="+wrong, "--update="+two[1].name+"=http://"+rangedAddress(t),
		"--yes"), "nobody answers at "+wrong)
	first, second := e.status(two[0]).Header.MemberId, e.status(two[1]).Header.MemberId
	if _, err := e.client.MemberUpdate(t.Context(), first, []string{wrong}); err != nil {
		t.Fatalf("etcd's order, update and then move: %v", err)
	}
	if _, err := e.client.MemberUpdate(t.Context(), second, []string{"http://" + rangedAddress(t)}); err == nil {
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
