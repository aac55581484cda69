package fast

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Each rule by which a voter records no proposal (voter.go), or the leader answers none early (leader.go), is a function that
// returns why it refuses, RefusedNot if it does not. None of them knows whether a test drops it.

// refuses reports whether a rule refuses a proposal, and notes why. It does not if a test drops it by one of its switches.
func (f *Path) refuses(why *consensus.Refused, refusal consensus.Refused, switches ...rules.Rule) bool {
	for _, rule := range switches {
		if f.dropped[rule] {
			return false
		}
	}
	*why = refusal
	return refusal != consensus.RefusedNot
}

// when returns a refusal if there is a reason for it.
func when(reason bool, why consensus.Refused) consensus.Refused {
	if reason {
		return why
	}
	return consensus.RefusedNot
}

// refusesKind refuses what the fast path never takes.
func (f *Path) refusesKind(p *consensus.Proposal) consensus.Refused {
	return when(!f.Open() || p.Kind != consensus.EntryCommand || p.ID.IsZero(), consensus.RefusedClosed)
}

// refusesTerm refuses what was proposed to the leader of another term.
func refusesTerm(v *View, term consensus.Term) consensus.Refused {
	return when(term != v.Term, consensus.RefusedTerm)
}

// refusesChanging refuses everything while a change of the configuration is under way.
func (f *Path) refusesChanging() consensus.Refused {
	return when(!f.configs.Stable(), consensus.RefusedConfig)
}

// refusesUnopened refuses what nobody could ever decide, an abort neither: its session is not open.
func refusesUnopened(state ProposalState) consensus.Refused {
	return when(state == ProposalNoSession, consensus.RefusedNoSession)
}

// refusesWidth refuses what could keep all others from the fast path.
func refusesWidth(footprint *consensus.Footprint) consensus.Refused {
	return when(!footprint.Narrow(), consensus.RefusedWide)
}

// refusesAttempt refuses a proposal of which another attempt is recorded here, also of what touches nothing: one of both would
// come first.
func (f *Path) refusesAttempt(p *consensus.Proposal) consensus.Refused {
	return when(f.pool.Holds(p.ID), consensus.RefusedConflict)
}

// refusesOrdered refuses a command whose place among all others matters: it is a barrier, or about sessions.
func refusesOrdered(footprint *consensus.Footprint) consensus.Refused {
	return when(footprint.Barrier || len(footprint.Owners) > 0, consensus.RefusedConflict)
}

// refusesSession refuses a proposal whose session something that is not applied opens or ends.
func (f *Path) refusesSession(p *consensus.Proposal) consensus.Refused {
	return when(f.unapplied.claims.MeetsOwner(p.ID.Session.Member), consensus.RefusedConflict)
}

// refusesSessions refuses everything while something that is not applied opens or ends a session, whosever it is.
func (f *Path) refusesSessions() consensus.Refused {
	return when(f.unapplied.claims.MeetsOwners(), consensus.RefusedConflict)
}

// outOfOrder returns why a command may not go the fast way whatever keys it touches.
func (f *Path) outOfOrder(p *consensus.Proposal, footprint *consensus.Footprint) (why consensus.Refused) {
	switch {
	case f.refuses(&why, refusesOrdered(footprint)):
	case f.refuses(&why, f.refusesSession(p), rules.SessionsCommute):
	case f.dropped[rules.SessionsMeetAll] && f.refuses(&why, f.refusesSessions()):
	}
	return why
}

// refusesLogged refuses what meets something that is logged and not applied.
func (f *Path) refusesLogged(footprint *consensus.Footprint) consensus.Refused {
	return when(f.unapplied.claims.Meets(footprint), consensus.RefusedConflict)
}

// refusesRecorded refuses what meets a record.
func (f *Path) refusesRecorded(footprint *consensus.Footprint) consensus.Refused {
	return when(f.pool.Meets(footprint), consensus.RefusedConflict)
}
