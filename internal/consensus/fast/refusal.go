package fast

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Each rule by which a voter refuses to record a proposal (voter.go), or the leader refuses to answer one early (leader.go), is
// a function that returns its reason, or RefusedNot. None of them knows whether a test drops it.

// refuses reports whether a rule refuses a proposal, and notes why. A rule does not refuse if a test drops one of its switches.
func (f *Path) refuses(why *consensus.Refused, refusal consensus.Refused, switches ...rules.Rule) bool {
	for _, rule := range switches {
		if f.dropped[rule] {
			return false
		}
	}
	*why = refusal
	return refusal != consensus.RefusedNot
}

// when returns why if there is a reason, and RefusedNot otherwise.
func when(reason bool, why consensus.Refused) consensus.Refused {
	if reason {
		return why
	}
	return consensus.RefusedNot
}

// refusesKind refuses all but commands with an id, and every proposal while the fast path is closed here.
func (f *Path) refusesKind(p *consensus.Proposal) consensus.Refused {
	return when(!f.Open() || p.Kind != consensus.EntryCommand || p.ID.IsZero(), consensus.RefusedClosed)
}

// refusesTerm refuses a proposal that was offered to the leader of another term.
func refusesTerm(v *View, term consensus.Term) consensus.Refused {
	return when(term != v.Term, consensus.RefusedTerm)
}

// refusesChanging refuses every proposal while a change of the configuration is under way.
func (f *Path) refusesChanging() consensus.Refused {
	return when(!f.configs.Stable(), consensus.RefusedConfig)
}

// refusesUnopened refuses a proposal of a session that is not open: no entry could decide it, and an abort neither.
func refusesUnopened(state ProposalState) consensus.Refused {
	return when(state == ProposalNoSession, consensus.RefusedNoSession)
}

// refusesWidth refuses a command whose footprint is so wide that it could keep all others from the fast path.
func refusesWidth(footprint *consensus.Footprint) consensus.Refused {
	return when(!footprint.Narrow(), consensus.RefusedWide)
}

// refusesAttempt refuses a proposal of which this member has recorded another attempt, even if its command touches nothing:
// only one of the two attempts can be applied.
func (f *Path) refusesAttempt(p *consensus.Proposal) consensus.Refused {
	return when(f.pool.Holds(p.ID), consensus.RefusedConflict)
}

// refusesOrdered refuses a command whose order among all others matters: a barrier, or a command about sessions.
func refusesOrdered(footprint *consensus.Footprint) consensus.Refused {
	return when(footprint.Barrier || len(footprint.Owners) > 0, consensus.RefusedConflict)
}

// refusesSession refuses a proposal if an entry that is not applied opens or ends its session.
func (f *Path) refusesSession(p *consensus.Proposal) consensus.Refused {
	return when(f.unapplied.claims.MeetsOwner(p.ID.Session.Member), consensus.RefusedConflict)
}

// refusesSessions refuses every proposal while an entry that is not applied opens or ends any session.
func (f *Path) refusesSessions() consensus.Refused {
	return when(f.unapplied.claims.MeetsOwners(), consensus.RefusedConflict)
}

// outOfOrder returns why a command may not take the fast path, whichever keys it touches.
func (f *Path) outOfOrder(p *consensus.Proposal, footprint *consensus.Footprint) (why consensus.Refused) {
	switch {
	case f.refuses(&why, refusesOrdered(footprint)):
	case f.refuses(&why, f.refusesSession(p), rules.SessionsCommute):
	case f.dropped[rules.SessionsMeetAll] && f.refuses(&why, f.refusesSessions()):
	}
	return why
}

// refusesLogged refuses a command that conflicts with an entry that is logged and not applied.
func (f *Path) refusesLogged(footprint *consensus.Footprint) consensus.Refused {
	return when(f.unapplied.claims.Meets(footprint), consensus.RefusedConflict)
}

// refusesRecorded refuses a command that conflicts with a record.
func (f *Path) refusesRecorded(footprint *consensus.Footprint) consensus.Refused {
	return when(f.pool.Meets(footprint), consensus.RefusedConflict)
}
