package process_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
)

// hears waits until n follows the member that leads. That is leader: it leads again if n hears that another one was elected.
func (e *elastic) hears(n, leader *node) {
	e.t.Helper()
	want := e.status(leader).Header.MemberId
	until(e.t, n.name+" hears "+leader.name, func(ctx context.Context) bool {
		status, err := e.client.Status(ctx, n.client)
		if err != nil || status.Leader == want {
			return err == nil
		}
		if status.Leader != 0 {
			e.lead(leader)
		}
		return false
	})
}

// settles waits until the configuration has the members where they are, as n knows it.
func (e *elastic) settles(n *node) {
	e.t.Helper()
	until(e.t, "the configuration has "+n.name+" at "+n.peer, func(ctx context.Context) bool {
		list, err := e.client.MemberList(ctx)
		if err != nil {
			return false
		}
		for _, m := range list.Members {
			if m.Name == n.name {
				return len(m.PeerURLs) == 1 && m.PeerURLs[0] == "http://"+n.peer
			}
		}
		return false
	})
}

// TestAddress_leaderMovedWhileDown moves a voter while a learner is down, and lets it lead. The learner finds the others, and the
// leader nowhere: it asks them where that is.
func TestAddress_leaderMovedWhileDown(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one := e.nodes[0]
	four := e.node("m4")
	id := e.add(four.peer, true)
	e.nodes = append(e.nodes, four)
	e.launch(four, "existing")
	e.hears(four, e.leader())
	four.kill()
	e.nodes, e.gone = e.nodes[:3], append(e.gone, four) // so that it ends with the test
	e.use()

	one.kill()
	one.peer = testnet.Address(t)
	e.launch(one, "existing")
	e.waitReady(one)
	e.settles(one)
	e.lead(one)

	e.launch(four, "existing")
	e.hears(four, one)
	if status := e.status(four); status.Header.MemberId != id {
		t.Errorf("%x answers for %x", status.Header.MemberId, id)
	}
}

// TestAddress_leaderMovedWhileVoterDown does so with a voter, and the others have to be told where the one is that moved. Then
// one more fails: the two that run are a quorum.
func TestAddress_leaderMovedWhileVoterDown(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	three.kill()
	one.kill()
	one.peer = testnet.Address(t)
	two.kill()
	e.quorate(0, []string{"set-address", "--data-dir", two.dir, "m1=http://" + one.peer, "--yes"}, "Once there is a leader")
	e.launch(one, "existing")
	e.launch(two, "existing")
	e.waitReady(one)
	e.settles(one)
	e.lead(one)

	e.launch(three, "existing")
	e.hears(three, one)
	two.kill()
	e.client.SetEndpoints(one.client, three.client)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := e.client.Put(ctx, "a", "b"); err != nil {
		t.Errorf("one of three failed: %v", err)
	}
}

// TestAddress_turnedWhileDown gives each of three members the peer port of the next one. Two are told where the others are; the third
// finds one of them where it looks for another one, and asks it.
func TestAddress_turnedWhileDown(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	for _, n := range e.nodes {
		n.kill()
	}
	one.peer, two.peer, three.peer = two.peer, three.peer, one.peer
	for _, n := range []*node{one, three} {
		e.quorate(0, []string{"set-address", "--data-dir", n.dir, "m1=http://" + one.peer, "m2=http://" + two.peer,
			"m3=http://" + three.peer, "--yes"}, "Once there is a leader")
	}
	e.launch(one, "existing")
	e.launch(three, "existing")
	e.waitReady(one)
	e.launch(two, "existing")
	e.hears(two, e.leader())
	e.checkVoters()
}

// TestAddress_leaderAddedWhileDown replaces one voter while another one is down, and lets the newcomer lead. The member that was down
// does not know it: it asks the one that it finds.
func TestAddress_leaderAddedWhileDown(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, three := e.nodes[0], e.nodes[2]
	three.kill()
	four := e.grow("m4")
	e.shrink(one)
	e.lead(four)

	e.launch(three, "existing")
	e.hears(three, four)
}

// TestAddress_allReplacedWhileDown replaces all other members while one is down. It finds none of those that it knows, and
// believes no other, until an operator tells it where a member is.
func TestAddress_allReplacedWhileDown(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	three.kill()
	four, five := e.grow("m4"), e.grow("m5")
	e.lead(four)
	e.shrink(one)
	e.shrink(two)
	e.lead(four) // two voters: the other one may have been elected

	e.launch(three, "existing")
	until(t, "it says that it does not hear the others", func(context.Context) bool {
		return strings.Contains(tail(three.log, 1<<20), "in no configuration that this member knows")
	})
	until(t, "it hears no leader for long", func(context.Context) bool {
		return strings.Count(tail(three.log, 1<<20), "asks for votes") >= 12
	})
	if status := e.status(three); status.Leader != 0 {
		t.Errorf("it follows %x, of which it knows nothing", status.Leader)
	}
	three.kill()
	id := fmt.Sprintf("%x", e.status(four).Header.MemberId)
	e.quorate(1, []string{"set-address", "--data-dir", three.dir, id + "=http://" + testnet.Address(t), "--yes"},
		"the data here have no member "+id)
	e.quorate(0, []string{"set-address", "--data-dir", three.dir, id + "=http://" + four.peer, "--yes"}, "(not in it)", "answers")
	e.launch(three, "existing")
	e.hears(three, four)
	e.checkVoters()
	until(t, "it has what the leader has, the members among that", func(context.Context) bool {
		return e.status(three).RaftAppliedIndex >= e.status(four).RaftAppliedIndex
	})
	four.kill()
	e.client.SetEndpoints(five.client, three.client)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := e.client.Put(ctx, "a", "b"); err != nil {
		t.Errorf("one of three failed: %v", err)
	}
}
