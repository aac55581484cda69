package configs_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that an election in a joint configuration needs a majority of each set, and is lost with either.
func TestHistory_Outcome(t *testing.T) {
	h := historyOf(rules.Set{})
	h.Append(changeAt(5, consensus.ProtocolJoint, jointOf([]consensus.MemberID{1, 2, 3}, 3, 4, 5)))
	h.Revise()
	for _, x := range []struct {
		name             string
		granted, refused []consensus.MemberID
		want             quorum.Outcome
	}{
		{"one set", []consensus.MemberID{1, 2}, nil, quorum.Pending},
		{"both sets", []consensus.MemberID{1, 3, 4}, nil, quorum.Won},
		{"one set refuses", []consensus.MemberID{1, 2}, []consensus.MemberID{4, 5}, quorum.Lost},
		{"no voters", []consensus.MemberID{8, 9}, nil, quorum.Pending},
	} {
		var v configs.Votes
		for _, id := range x.granted {
			v.Grant(id)
		}
		for _, id := range x.refused {
			v.Refuse(id)
		}
		if got := h.Outcome(&v); got != x.want {
			t.Errorf("%s: got %v, want %v", x.name, got, x.want)
		}
	}
}
