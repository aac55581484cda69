package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

type noTable struct{}

func (noTable) Set(_, _ []byte)  {}
func (noTable) DeleteRaw([]byte) {}

// Ensure that leases which are revoked long before their time leave nothing behind, and that the others still end in
// order.
func TestLessor_Revoke_leavesNothingInHeap(t *testing.T) {
	l, rows := New(), &Rows{Table: noTable{}}
	now := time.Unix(1_000_000, 0)
	l.Promote(now, 0)
	const kept = 10
	for id := kv.LeaseID(1); id <= kept; id++ {
		l.Grant(rows, id, int64(100-id))
	}
	for id := kv.LeaseID(1000); id < 11_000; id++ {
		l.Grant(rows, id, 1<<30)
		l.Expired(now, 0) // tells the time, so that the countdown begins
		l.Revoke(rows, id)
	}
	if most := 2*kept + minDueSwept + 1; len(l.due) > most {
		t.Errorf("%d items for %d leases, want at most %d", len(l.due), kept, most)
	}
	ended := l.Expired(now.Add(100*time.Second), 100)
	if len(ended) != kept {
		t.Fatalf("%d leases ended, want %d", len(ended), kept)
	}
	for i, id := range ended {
		if want := kept - kv.LeaseID(i); id != want {
			t.Errorf("lease %d ended at place %d, want %d", id, i, want)
		}
	}
}
