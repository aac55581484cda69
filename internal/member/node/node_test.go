package node_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/node"
)

// Ensure that a node announces the configuration that its disk knows, and none if it knows none yet: a member that joins would
// replace the addresses that it was given by none.
func TestNew_configures(t *testing.T) {
	config := consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1, PeerURLs: []string{"http://1"}}}}
	for _, x := range []struct {
		name     string
		restored raft.Restored
		want     int
	}{
		{"a founder", raft.Restored{Base: consensus.Founding(config)}, 1},
		{"a member that joins", raft.Restored{}, 0},
	} {
		options := raft.Defaults(1)
		options.Fast = raft.FastOptions{Footprint: kv.PayloadFootprint, Revises: kv.Revises}
		configured := 0
		_, err := node.New(node.Options{Raft: options, FirstSession: 1, RetryTicks: 300}, x.restored, node.Ports{
			Configure: func(raft.ConfigInForce) { configured++ },
		})
		if err != nil || configured != x.want {
			t.Errorf("%s: configured %d times, want %d; %v", x.name, configured, x.want, err)
		}
	}
}
