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
