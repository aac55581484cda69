package transport

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that what keeps a cluster alive overtakes bulk, and that a vote which is bulk itself does not take that stream.
func TestIsExpress(t *testing.T) {
	vote := func(bytes int) consensus.Message {
		return consensus.Message{Kind: consensus.MsgVoteReply, Ballot: consensus.Ballot{Records: []consensus.Record{{Payload: make([]byte, bytes)}}}}
	}
	for _, row := range []struct {
		name    string
		message consensus.Message
		want    bool
	}{
		{"a heartbeat", consensus.Message{Kind: consensus.MsgHeartbeat}, true},
		{"entries", consensus.Message{Kind: consensus.MsgAppend}, false},
		{"a vote", consensus.Message{Kind: consensus.MsgVoteReply}, true},
		{"a vote with a few records", vote(1 << 10), true},
		{"a vote with a full pool", vote(4 << 20), false},
	} {
		if got := IsExpress(&row.message); got != row.want {
			t.Errorf("%s: got %v", row.name, got)
		}
	}
}
