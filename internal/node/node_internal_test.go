package node

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that what is proposed while nobody leads waits here: it would come back from the core, and what has left once is not
// offered on the fast path any more.
func TestNode_Step_withoutLeader(t *testing.T) {
	config := consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: []consensus.Member{
		{ID: 1, PeerURLs: []string{"http://1"}}, {ID: 2, PeerURLs: []string{"http://2"}},
	}}
	options := raft.Defaults(1)
	options.Fast = raft.FastOptions{Footprint: kv.PayloadFootprint, Revises: kv.Revises}
	n, err := New(Options{Raft: options, FirstSession: 1, RetryTicks: 300},
		raft.Restored{Base: consensus.Founding(config)}, Ports{
			Configure: func(raft.ConfigInForce) {},
			Distance:  func(consensus.MemberID) (time.Duration, bool) { return 0, false },
			Send:      func([]consensus.Message) {}, Persist: func(Persist) {}, Observe: func([]raft.Event) {},
		})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Propose(&kv.Command{Put: &kv.PutOp{Key: []byte("k")}}, nil); err != nil {
		t.Fatal(err)
	}
	if n.Step(time.Unix(1000, 0), raft.Unreachable{Member: 2}); !n.proposals.Waiting() {
		t.Error("the core was given what it can only refuse")
	}
}
