package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// Measure returns the strength of c, of whose members those in active were heard lately.
func Measure(c *consensus.Config, active []consensus.MemberID) Strength {
	s := Strength{
		Voters:      len(c.Voters),
		Outgoing:    len(c.Outgoing),
		Learners:    len(c.Learners),
		Quorum:      quorum.Majority(len(c.Voters)),
		Superquorum: quorum.Super(len(c.Voters)),
		Active:      heard(c.Voters, active),
	}
	s.Tolerates = s.Active - s.Quorum
	if !c.IsJoint() {
		return s
	}
	s.OutQuorum = quorum.Majority(s.Outgoing)
	if other := heard(c.Outgoing, active); other-s.OutQuorum < s.Tolerates {
		s.Active, s.Tolerates = other, other-s.OutQuorum
	}
	return s
}

// heard counts the voters that are active.
func heard(voters, active []consensus.MemberID) int {
	n := 0
	for _, id := range voters {
		if slices.Contains(active, id) {
			n++
		}
	}
	return n
}
