package streams

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/apply/applytest"
)

// Ensure that sessions of which much is kept get no more once all of them together are full, and others still do.
func TestStreams_roomForResult(t *testing.T) {
	m := fullMachine(t)
	session := func(client uint64) consensus.SessionID {
		return consensus.ClientSession(consensus.MemberID(client), client)
	}
	for _, c := range []struct {
		client uint64
		most   int64
		want   error
	}{{1, DefaultBounds().ResultBytes, nil}, {1, 70_000, errResultsFull}, {2, 70_000, nil}} {
		bounds := DefaultBounds()
		bounds.ResultBytes = c.most
		if got := roomForResult(m, session(c.client), &bounds); got != c.want {
			t.Errorf("client %d of %d bytes, where %d may be: %v", c.client, m.ResultBytes(), c.most, got)
		}
	}
}

func openMachine(t *testing.T) *apply.Machine {
	t.Helper()
	return applytest.Open(t, 1, consensus.Config{})
}
