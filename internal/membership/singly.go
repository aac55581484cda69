package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// due are the changes of roles that the next entry makes: all that are left or, by protocol single, one that moves a voter,
// with the last of them those that move none. A job by single so goes through as many entries as voters change, and each is
// chosen by the configuration that the one before has led to.
func (g *goal) due() roles {
	if g.spec.Protocol != consensus.ProtocolSingle {
		return g.roles
	}
	moves := slices.Concat(
		steps(consensus.ChangePromote, g.promote),
		steps(consensus.ChangeRemove, pick(g.remove, g.config.IsVoter)),
		steps(consensus.ChangeDemote, g.demote))
	if len(moves) < 2 {
		return g.roles
	}
	best := g.safest(moves)
	switch id := []consensus.MemberID{best.Member.ID}; best.Kind {
	case consensus.ChangePromote:
		return roles{promote: id}
	case consensus.ChangeRemove:
		return roles{remove: id}
	default:
		return roles{demote: id}
	}
}

// dueRoom is the same for the members that are removed for their URLs.
func (g *goal) dueRoom() []consensus.MemberID {
	if g.spec.Protocol != consensus.ProtocolSingle {
		return g.room
	}
	if best := g.safest(steps(consensus.ChangeRemove, pick(g.room, g.config.IsVoter))); best != nil {
		return []consensus.MemberID{best.Member.ID}
	}
	return g.room
}

// safest returns the step of one voter after which most further failures are tolerated; of equal ones the first that does not
// concern the leader, so that newcomers vote before others go. If all are refused it returns the first, so that the refusal is
// told; nil if there is none.
func (g *goal) safest(candidates []consensus.ChangeStep) *consensus.ChangeStep {
	var best *consensus.ChangeStep
	tolerates := 0
	facts, fit := g.view.facts(), g.view.Fit()
	for i := range candidates {
		c := &candidates[i]
		change, reason := reconfig.Next(&g.config, g.view.ID, g.request([]consensus.ChangeStep{*c}), &facts)
		if reason != consensus.ReasonNone {
			continue
		}
		after := change.Config.Settle()
		s := Measure(&after, fit)
		leads := best != nil && best.Member.ID == g.view.Leader
		if best == nil || s.Tolerates > tolerates || s.Tolerates == tolerates && leads {
			best, tolerates = c, s.Tolerates
		}
	}
	if best == nil && len(candidates) > 0 {
		return &candidates[0]
	}
	return best
}
