package identity_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Ensure that only an answer which names the cluster and the member is taken for the member, and that nothing else proves more
// than it says.
func TestSight_Judge(t *testing.T) {
	claim := func(cluster consensus.ClusterID, member consensus.MemberID) identity.Sight {
		return identity.Sight{Claim: &identity.Claim{Cluster: cluster, Member: member}}
	}
	const bound = 4
	empty := func(storage byte) identity.Sight {
		s := claim(9, 2)
		s.Claim.Empty, s.Claim.Storage = true, consensus.StorageID{storage}
		return s
	}
	other := claim(9, 2)
	other.Claim.Storage = identity.OtherStorage
	refusal := func(reason identity.Reason) identity.Sight {
		return identity.Sight{Refusal: &identity.Refusal{Reason: reason}}
	}
	for name, tc := range map[string]struct {
		sight          identity.Sight
		want, careless identity.Presence // careless: where any answer counts
	}{
		"nothing":                  {identity.Sight{}, identity.Unsure, identity.Unsure},
		"a refused connection":     {identity.Sight{Refused: true}, identity.Silent, identity.Silent},
		"the member":               {claim(9, 2), identity.Present, identity.Present},
		"another member":           {claim(9, 3), identity.Another, identity.Present},
		"its like elsewhere":       {claim(8, 2), identity.Another, identity.Present},
		"a process without data":   {empty(2), identity.Empty, identity.Present},
		"one with the directory":   {empty(bound), identity.Present, identity.Present},
		"another directory":        {other, identity.Another, identity.Present},
		"a claim without a name":   {claim(9, 0), identity.Unsure, identity.Present},
		"a member of another":      {refusal(identity.ForeignCluster), identity.Another, identity.Present},
		"a member that is not it":  {refusal(identity.WrongMember), identity.Another, identity.Present},
		"a member of later epochs": {refusal(identity.OtherEpoch), identity.Unsure, identity.Present},
		"a client port":            {identity.Sight{NoPeerPort: true}, identity.NoPeerPort, identity.Present},
	} {
		sought := identity.Sought{Cluster: 9, Member: 2, Storage: consensus.StorageID{bound}}
		if got := tc.sight.Judge(sought, identity.Rules{}); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if got := tc.sight.Judge(sought, identity.Rules{AnyAnswerCounts: true}); got != tc.careless {
			t.Errorf("%s where any answer counts: %v, want %v", name, got, tc.careless)
		}
	}
	sought := identity.Sought{Cluster: 9, Member: 2, Storage: consensus.StorageID{bound}}
	if got := other.Judge(sought, identity.Rules{IgnoreBinding: true}); got != identity.Present {
		t.Errorf("another directory where nobody is bound: %v", got)
	}
}
