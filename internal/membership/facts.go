package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

func (v *View) publishedName(m *consensus.Member) string {
	if seen, ok := v.Member(m.ID); ok && seen.Name != "" {
		return seen.Name
	}
	return m.Name
}

func (v *View) tombstone(id consensus.MemberID) bool { return slices.Contains(v.Tombstones, id) }

// facts are what the leader's core would take into account.
func (v *View) facts() reconfig.Facts {
	facts := reconfig.Facts{
		Active: v.active(), Tombstones: v.Tombstones, MaxLearners: v.MaxLearners, Strict: v.Strict,
		CountLaggards: v.Faults.CountLaggards,
	}
	for i := range v.Members {
		if m := &v.Members[i]; (m.CaughtUp && m.Active) || m.ID == v.Leader {
			facts.CaughtUp = append(facts.CaughtUp, m.ID)
		}
	}
	return facts
}
