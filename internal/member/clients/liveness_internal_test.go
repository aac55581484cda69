package clients

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that clients which cannot be reported, because no member leads, take no more memory than the leader's record may.
func TestLiveness_add_bounded(t *testing.T) {
	var r liveness
	for id := range consensus.MemberID(MaxHeardClients + 10) {
		r.add(id)
	}
	r.add(0) // an id that is known already
	if got := len(r.takeFresh()); got != MaxHeardClients {
		t.Errorf("%d clients wait to be told of, want %d", got, MaxHeardClients)
	}
}
