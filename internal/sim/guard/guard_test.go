package guard_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/sim/guard"
)

func claim(member consensus.MemberID, boots uint64) identity.Claim {
	return identity.Claim{Cluster: 1, Member: member, Storage: consensus.StorageID{byte(member)},
		Life: consensus.Life{Boots: boots, Nonce: boots}}
}

// Ensure that a second life waits while it is not known whether the first still speaks, is refused if it does, and let in if it
// stays silent; and that the first is refused from then on.
func TestGuard_Judge_secondLife(t *testing.T) {
	for _, row := range []struct {
		name  string
		heard time.Duration // from the first life
		want  guard.Outcome
	}{
		{"it speaks", 2 * time.Second, guard.Refused},
		{"it is silent", 0, guard.Remember},
	} {
		d := guard.New(claim(1, 1), nil, identity.Rules{}, time.Second)
		d.Configure(&consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: []consensus.Member{
			{ID: 1, Storage: consensus.StorageID{1}}, {ID: 2, Storage: consensus.StorageID{2}},
		}})
		first, second := claim(2, 1), claim(2, 2)
		heard := time.Duration(0)
		listen := func(consensus.Life) (time.Duration, bool) { return heard, true }
		if got, _ := d.Judge(&first, 0, listen); got != guard.Remember {
			t.Fatalf("%s: the first life: outcome %d", row.name, got)
		}
		if got, _ := d.Judge(&second, time.Second, listen); got != guard.Waits {
			t.Errorf("%s: the second life at once: outcome %d, want that it waits", row.name, got)
		}
		heard = row.heard
		if got, _ := d.Judge(&second, 3*time.Second, listen); got != row.want {
			t.Errorf("%s: the second life: outcome %d, want %d", row.name, got, row.want)
		}
		wantFirst := guard.Refused
		if row.want == guard.Refused {
			wantFirst = guard.Welcome
		}
		closed := func(consensus.Life) (time.Duration, bool) { return 0, false }
		if got, _ := d.Judge(&first, 4*time.Second, closed); got != wantFirst {
			t.Errorf("%s: the first life afterwards: outcome %d, want %d", row.name, got, wantFirst)
		}
	}
}
