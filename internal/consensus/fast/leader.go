package fast

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Evaluation asks the shell to evaluate entries on the applied state, once Output.Seq is durable. Message then leaves with the
// results that are certain: that of Entries[i] is Verdicts[i].Reply.
type Evaluation struct {
	Message consensus.Message
	Entries []consensus.Entry
}

// Admitted is a proposal that the leader takes on the fast path: its entry, at an exact revision, and its command's footprint.
type Admitted struct {
	Entry     consensus.Entry // index and term are those at which it is appended
	Footprint consensus.Footprint
}

// Admit returns the entry, at an exact revision, with which the leader takes a proposal, or the reason for which it refuses it.
// No entry that is not applied conflicts with the command, so the command can be evaluated on the applied state. The caller
// appends the entry and calls Appended before it calls Admit again.
func (f *Path) Admit(v *View, p *consensus.Proposal, term consensus.Term) (admitted Admitted, why consensus.Refused) {
	if why = f.closedTo(v, p, term); why != consensus.RefusedNot {
		return admitted, why
	}
	if why = f.unwanted(p); why != consensus.RefusedNot {
		return admitted, why
	}
	footprint := f.opts.Footprint(p.Payload)
	if f.refuses(&why, refusesWidth(&footprint), rules.AnyWidth) {
		return admitted, why
	}
	revision := f.nextExact()
	if why = f.meets(p, &footprint, revision); why != consensus.RefusedNot {
		return admitted, why
	}
	f.counts.Answered++
	entry := consensus.Entry{
		Kind: p.Kind, Proposal: p.ID, Proposer: p.Proposer, Answered: f.settings.Self, ExactRevision: revision,
		Payload: p.Payload,
	}
	return Admitted{entry, footprint}, consensus.RefusedNot
}

// closedTo returns why the leader answers no proposal early now, or none of this term.
func (f *Path) closedTo(v *View, p *consensus.Proposal, term consensus.Term) (why consensus.Refused) {
	switch {
	case f.refuses(&why, f.refusesKind(p)):
	case f.refuses(&why, refusesTerm(v, term)):
	case f.refuses(&why, f.refusesChanging(), rules.AnyConfig):
	case f.refuses(&why, when(!f.configs.Config().IsVoter(f.settings.Self), consensus.RefusedConfig)):
	case f.refuses(&why, refusesUnstarted(v), rules.LeaderOpensEarly):
	case f.refuses(&why, when(v.Leaving, consensus.RefusedClosed)):
	}
	return why
}

// refusesUnstarted refuses every proposal until an entry of the leader's term has committed.
func refusesUnstarted(v *View) consensus.Refused { return when(!v.Started, consensus.RefusedClosed) }

// unwanted returns why the state of a proposal, or the size of the log's tail, keeps the leader from answering it early.
func (f *Path) unwanted(p *consensus.Proposal) (why consensus.Refused) {
	updated := f.unapplied.update()
	state := f.stateOf(p.ID)
	full := !updated || f.log.Uncommitted()+len(p.Payload) > f.settings.MaxUncommittedBytes || f.log.Full()
	switch {
	case f.refuses(&why, f.refusesRepeat(p, state), rules.LeaderNoDedup):
	case f.refuses(&why, refusesUnopened(state), rules.AnswerUnopened):
	case f.refuses(&why, when(full, consensus.RefusedFull)):
	}
	return why
}

// refusesRepeat refuses a proposal that is in the log or was applied, and every proposal of a session that is over.
func (f *Path) refusesRepeat(p *consensus.Proposal, state ProposalState) consensus.Refused {
	if state == ProposalApplied || f.unapplied.holds(p.ID) {
		return consensus.RefusedKnown
	}
	return when(state == ProposalRetired, consensus.RefusedClosed)
}

// nextExact returns the revision after all those that entries of the log may take.
func (f *Path) nextExact() uint64 {
	if f.dropped[rules.LeaderNoLogOrder] {
		return f.unapplied.revision + 1
	}
	return f.unapplied.revisionBound() + 1
}

// meets returns why the leader cannot answer a command at a revision beside the log and its own records.
func (f *Path) meets(p *consensus.Proposal, footprint *consensus.Footprint, revision uint64) (why consensus.Refused) {
	switch {
	case f.refuses(&why, f.outOfOrder(p, footprint)):
	case f.refuses(&why, f.refusesLogged(footprint), rules.LeaderNoLogKeys):
	case f.refuses(&why, f.refusesRecorded(footprint), rules.LeaderNoPoolKeys):
	case f.refuses(&why, f.refusesAttempt(p)):
	case f.refuses(&why, f.refusesReserved(revision), rules.LeaderNoPoolOrder):
	}
	return why
}

// refusesReserved refuses a revision that is not above all those at which this member has recorded proposals as a voter.
func (f *Path) refusesReserved(revision uint64) consensus.Refused {
	return when(f.pool.Top() >= revision, consensus.RefusedConflict)
}

// Appended notes that the entry of a proposal is in the log, and adds the proposal to the evaluation whose answer goes to its
// proposer.
func (f *Path) Appended(v *View, to consensus.MemberID, a *Admitted) {
	f.unapplied.know(a.Entry.Index, a.Footprint)
	n := len(f.evaluations)
	if n == 0 || f.evaluations[n-1].Message.To != to {
		f.evaluations = append(f.evaluations, Evaluation{Message: consensus.Message{
			Kind: consensus.MsgFast, From: f.settings.Self, To: to, Term: v.Term, Config: f.configs.ID(),
		}})
		n++
	}
	last := &f.evaluations[n-1]
	last.Entries = append(last.Entries, a.Entry)
	last.Message.Verdicts = append(last.Message.Verdicts, consensus.Verdict{Attempt: a.Entry.Attempt()})
}

// TakeEvaluations returns the evaluations that Appended gathered since the last call.
func (f *Path) TakeEvaluations() []Evaluation {
	evaluations := f.evaluations
	f.evaluations = nil
	return evaluations
}
