package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// Measure returns the strength of c, of whose members those in fit can take part in a commit: see View.Fit.
func Measure(c *consensus.Config, fit []consensus.MemberID) Strength {
	s := Strength{
		Voters:      len(c.Voters),
		Outgoing:    len(c.Outgoing),
		Learners:    len(c.Learners),
		Quorum:      quorum.Majority(len(c.Voters)),
		Superquorum: quorum.Super(len(c.Voters)),
		Active:      among(c.Voters, fit),
	}
	s.Tolerates = s.Active - s.Quorum
	if !c.IsJoint() {
		return s
	}
	s.OutQuorum = quorum.Majority(s.Outgoing)
	if other := among(c.Outgoing, fit); other-s.OutQuorum < s.Tolerates {
		s.Active, s.Tolerates = other, other-s.OutQuorum
	}
	return s
}

// among counts the voters that are in fit.
func among(voters, fit []consensus.MemberID) int {
	n := 0
	for _, id := range voters {
		if slices.Contains(fit, id) {
			n++
		}
	}
	return n
}
