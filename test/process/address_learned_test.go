package process_test

import (
	"context"
	"testing"
	"time"
)

// learnPatience is within which a member hears a leader that has moved while the member was down.
const learnPatience = 15 * time.Second

// hears waits until n follows the member that leads, and fails if that takes long.
func (e *elastic) hears(n, leader *node) {
	e.t.Helper()
	want, begun := e.status(leader).Header.MemberId, time.Now()
	until(e.t, n.name+" hears "+leader.name, func(ctx context.Context) bool {
		status, err := e.client.Status(ctx, n.client)
		return err == nil && status.Leader == want
	})
	if took := time.Since(begun); took > learnPatience {
		e.t.Errorf("%s hears %s after %v, want %v at most", n.name, leader.name, took, learnPatience)
	}
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
	four := e.ranged("m4")
	id := e.add(four.peer, true)
	e.nodes = append(e.nodes, four)
	e.launch(four, "existing")
	e.hears(four, e.leader())
	four.kill()
	e.nodes, e.gone = e.nodes[:3], append(e.gone, four) // so that it ends with the test
	e.use()

	one.kill()
	one.peer = rangedAddress(t)
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
	one.peer = rangedAddress(t)
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
