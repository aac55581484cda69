package configs

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Votes are the answers of the voters in one election, or in the pre-vote before it.
type Votes struct {
	granted, refused []consensus.MemberID
}

// Reset drops all answers.
func (v *Votes) Reset() { v.granted, v.refused = v.granted[:0], v.refused[:0] }

// Grant notes that a member votes for the candidate.
func (v *Votes) Grant(id consensus.MemberID) { v.granted = append(v.granted, id) }

// Refuse notes that a member does not.
func (v *Votes) Refuse(id consensus.MemberID) { v.refused = append(v.refused, id) }

// Granted reports whether a member votes for the candidate.
func (v *Votes) Granted(id consensus.MemberID) bool { return slices.Contains(v.granted, id) }

// Answered reports whether a member has answered.
func (v *Votes) Answered(id consensus.MemberID) bool {
	return v.Granted(id) || slices.Contains(v.refused, id)
}

// Outcome counts the votes by the configuration in force, set by set. A candidate outside a set does not count there.
func (h *History) Outcome(v *Votes) quorum.Outcome {
	c := &h.config
	if h.dropped[rules.UnionOfJoint] {
		both := slices.Concat(c.Voters, c.Outgoing)
		slices.Sort(both)
		return v.count(slices.Compact(both))
	}
	result := v.count(c.Voters)
	if c.IsJoint() {
		result = quorum.Both(result, v.count(c.Outgoing))
	}
	return result
}

func (v *Votes) count(voters []consensus.MemberID) quorum.Outcome {
	granted, refused := 0, 0
	for _, id := range voters {
		switch {
		case slices.Contains(v.granted, id):
			granted++
		case slices.Contains(v.refused, id):
			refused++
		}
	}
	return quorum.Tally(len(voters), granted, refused)
}
