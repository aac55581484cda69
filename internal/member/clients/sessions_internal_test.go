package clients

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that the clients of one host take no more sessions than are free for other hosts, that the next host finds some, that
// a client that has a session may open its next one, and that the limit on all sessions holds.
func TestRoomForSession(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: the race detector finds nothing here")
	}
	const most = 276
	host := func(client consensus.MemberID) consensus.MemberID { return client / 1000 }
	var open []consensus.SessionID
	fill := func(of consensus.MemberID, each int) (opened int) {
		neighbours := func(other consensus.MemberID) bool { return host(other) == of }
		for client := 1000 * of; client < 1000*(of+1); client++ {
			for range each {
				if roomForSession(open, most, client, neighbours) {
					open = append(open, consensus.SessionID{Member: client})
					opened++
				}
			}
		}
		return opened
	}
	if got := fill(1, 1); got != most/2 {
		t.Errorf("a host has %d sessions of %d, want half", got, most)
	}
	if got := fill(1, 3); got == 0 || len(open) > most*2/3 {
		t.Errorf("clients that have sessions open %d more; there are %d then, of %d", got, len(open), most)
	}
	left := most - len(open)
	if got := fill(2, 1); got != (left+1)/2 {
		t.Errorf("the next host has %d of %d, want half", got, left)
	}
	for of := consensus.MemberID(3); of < 400; of++ {
		if got := fill(of, 1); got == 0 && len(open) < most {
			t.Fatalf("host %d has none, and %d of %d are open", of, len(open), most)
		}
	}
	if len(open) != most {
		t.Errorf("%d sessions are open, want %d", len(open), most)
	}
}
