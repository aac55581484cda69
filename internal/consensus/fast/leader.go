package fast

import "github.com/quorate/quorate/internal/consensus"

// Evaluation asks the shell, once Output.Seq is durable, for the results that entries will give, on the applied state:
// Message then leaves with those that are known for certain, as Verdicts[i].Reply of Entries[i].
type Evaluation struct {
	Message consensus.Message
	Entries []consensus.Entry
}

// Admitted is a proposal that the leader takes on the fast path: its entry, at an exact revision, and what it touches.
type Admitted struct {
	Entry     consensus.Entry // index and term are those at which it is appended
	Footprint consensus.Footprint
}

// Admit returns the entry, at an exact revision, by which the leader takes a proposal, or says why not. Nothing that is not
// applied touches what it touches: the applied state is what it will meet. The entry is appended, and Appended called, before
// Admit is called again.
func (f *Path) Admit(v *View, p *consensus.Proposal, term consensus.Term) (Admitted, consensus.Refused) {
	faults, none := f.faults, Admitted{}
	switch {
	case !f.Open() || p.Kind != consensus.EntryCommand || p.ID.IsZero():
		return none, consensus.RefusedClosed
	case term != v.Term:
		return none, consensus.RefusedTerm
	case !f.configs.Stable() && !faults.AnyConfig, !f.configs.Config().IsVoter(f.settings.Self):
		return none, consensus.RefusedConfig
	case !v.Started && !faults.LeaderOpensEarly, v.Leaving:
		return none, consensus.RefusedClosed
	}
	updated := f.unapplied.update()
	switch state := f.stateOf(p.ID); {
	case faults.LeaderNoDedup:
	case state == ProposalApplied || f.unapplied.holds(p.ID):
		return none, consensus.RefusedKnown
	case state == ProposalRetired:
		return none, consensus.RefusedClosed
	case state == ProposalNoSession && !faults.AnswerUnopened:
		return none, consensus.RefusedNoSession // an abort could not decide it
	}
	if !updated || f.log.Uncommitted()+len(p.Payload) > f.settings.MaxUncommittedBytes || f.log.Full() {
		return none, consensus.RefusedFull
	}
	footprint := f.opts.Footprint(p.Payload)
	if !footprint.Narrow() && !faults.AnyWidth {
		return none, consensus.RefusedWide
	}
	revision := f.unapplied.revisionBound() + 1
	if faults.LeaderNoLogOrder {
		revision = f.unapplied.revision + 1
	}
	if f.ordered(p, &footprint) || (f.unapplied.claims.Meets(&footprint) && !faults.LeaderNoLogKeys) ||
		(f.pool.Meets(&footprint) && !faults.LeaderNoPoolKeys) ||
		f.pool.Holds(p.ID) || // another attempt, as with a voter
		(f.pool.Top() >= revision && !faults.LeaderNoPoolOrder) {
		return none, consensus.RefusedConflict
	}
	f.counts.Answered++
	entry := consensus.Entry{
		Kind: p.Kind, Proposal: p.ID, Proposer: p.Proposer, Answered: f.settings.Self, ExactRevision: revision,
		Payload: p.Payload,
	}
	return Admitted{entry, footprint}, consensus.RefusedNot
}

// ordered reports whether a command may not go the fast way whatever keys it touches: it is a barrier or about sessions, or
// something that is not applied opens or ends sessions of its proposer.
func (f *Path) ordered(p *consensus.Proposal, footprint *consensus.Footprint) bool {
	return footprint.Barrier || len(footprint.Owners) > 0 ||
		(f.unapplied.claims.MeetsOwner(p.ID.Session.Member) && !f.faults.SessionsCommute) ||
		(f.unapplied.claims.MeetsOwners() && f.faults.SessionsMeetAll)
}

// Appended notes that the entry of a proposal is in the log, and asks for the reply to it, with those to the same proposer.
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

// TakeEvaluations returns what Appended gathered since it was called last.
func (f *Path) TakeEvaluations() []Evaluation {
	evaluations := f.evaluations
	f.evaluations = nil
	return evaluations
}
