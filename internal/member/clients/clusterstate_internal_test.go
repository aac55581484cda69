package clients

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that a waiting goroutine is woken by a change that a proposer must know, and by no other change.
func TestClusterBoard_set(t *testing.T) {
	var b clusterBoard
	if b.isMember(1) || !b.isMember(consensus.NoMember) || b.state().Leader != consensus.NoMember {
		t.Error("it knows something before the start")
	}
	members := consensus.Config{Members: []consensus.Member{{ID: 1}}}
	for _, step := range []struct {
		what  string
		state ClusterState
		wakes bool
	}{
		{"the first", ClusterState{Term: 1, config: members}, true},
		{"the same", ClusterState{Term: 1, config: members}, false},
		{"a leader", ClusterState{Leader: 1, Term: 1, config: members}, true},
		{"a term", ClusterState{Leader: 1, Term: 2, config: members}, true},
		{"a configuration", ClusterState{Leader: 1, Term: 2, Config: consensus.ConfigID{Index: 3}, config: members}, true},
		{"the fast path", ClusterState{Leader: 1, Term: 2, Config: consensus.ConfigID{Index: 3}, Fast: true, config: members}, true},
	} {
		changed := b.changes.Next()
		b.set(&step.state)
		woken := false
		select {
		case <-changed:
			woken = true
		default:
		}
		if now := b.state(); woken != step.wakes || !now.Same(&step.state) {
			t.Errorf("%s: woken %t, now %+v", step.what, woken, now)
		}
	}
	if !b.isMember(1) || b.isMember(2) {
		t.Error("members are not told from clients")
	}
}
