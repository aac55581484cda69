package raft

import "github.com/quorate/quorate/internal/consensus"

// handleFastPropose appends proposals, at once fixed to a revision if nothing stands in the way, and else as any other.
func (r *Replica) handleFastPropose(m *consensus.Message) {
	if r.soft.role != Leader || m.Config != r.configs.ID() {
		r.handlePropose(m)
		return
	}
	for i := range m.Proposals {
		p := &m.Proposals[i]
		entry, why := r.admitFast(p, m.Term)
		switch why {
		case consensus.RefusedNot:
			r.evaluate(m.From, entry)
			continue
		case consensus.RefusedKnown:
			// Whoever proposed it learns of its end when it is applied. A second entry would change nothing.
		default:
			r.admission.admit(m.Proposals[i:i+1], m.From)
		}
		r.fast.verdicts = append(r.fast.verdicts, addressedVerdict{m.From, consensus.Verdict{
			Attempt: consensus.Attempt{Proposal: p.ID}, Refusal: why,
		}})
	}
}

// admitFast appends a proposal at an exact revision, or says why not. Nothing that is not applied touches what it touches:
// the applied state is what it will meet.
func (r *Replica) admitFast(p *consensus.Proposal, term consensus.Term) (consensus.Entry, consensus.Refused) {
	f, faults := &r.fast, &r.opts.Faults.Fast
	switch {
	case !r.opensFast() || p.Kind != consensus.EntryCommand || p.ID.IsZero():
		return consensus.Entry{}, consensus.RefusedClosed
	case term != r.hard.term:
		return consensus.Entry{}, consensus.RefusedTerm
	case !r.configs.Stable() && !faults.AnyConfig, !r.configs.Config().IsVoter(r.opts.ID):
		return consensus.Entry{}, consensus.RefusedConfig
	case r.log.Commit() < r.soft.noop && !faults.OpenTooSoon, r.transfer.target != consensus.NoMember, r.transfer.feedsHeir():
		return consensus.Entry{}, consensus.RefusedClosed
	}
	claimed := r.claimLog()
	switch fate := r.fate(p.ID); {
	case faults.NoDedup:
	case fate == FateDone || f.inLog[p.ID] > 0:
		return consensus.Entry{}, consensus.RefusedKnown
	case fate == FateRetired:
		return consensus.Entry{}, consensus.RefusedClosed
	case fate == FateStrange && !faults.AnswerStrangers:
		return consensus.Entry{}, consensus.RefusedStrange // an abort could not decide it
	}
	if !claimed || r.log.Uncommitted()+len(p.Payload) > r.opts.MaxUncommittedBytes || r.log.Full() {
		return consensus.Entry{}, consensus.RefusedFull
	}
	footprint := r.footprint(p.Payload)
	if !footprint.Narrow() && !faults.AnyWidth {
		return consensus.Entry{}, consensus.RefusedWide
	}
	revision := r.boundOf() + 1
	if faults.NoLeaderOrder {
		revision = f.revision + 1
	}
	if r.ordered(p, &footprint) || f.claims.Meets(&footprint) || (f.pool.Meets(&footprint) && !faults.NoLeaderPoolFootprint) ||
		f.pool.Holds(p.ID) || // another attempt, as with a voter
		(f.pool.Top() >= revision && !faults.NoLeaderPoolOrder) {
		return consensus.Entry{}, consensus.RefusedConflict
	}
	entry := consensus.Entry{
		Kind: p.Kind, Proposal: p.ID, Proposer: p.Proposer, Answered: r.opts.ID, ExactRevision: revision, Payload: p.Payload,
	}
	entry.Index, entry.Term = r.repl.appendEntry(entry), r.hard.term
	r.admission.owe(p.Proposer, entry.Index)
	f.counts.Answered++
	return entry, consensus.RefusedNot
}

// ordered reports whether a command may not go the fast way whatever keys it touches: it is a barrier or about sessions, or
// something that is not applied opens or ends sessions of its proposer.
func (r *Replica) ordered(p *consensus.Proposal, footprint *consensus.Footprint) bool {
	return footprint.Barrier || len(footprint.Owners) > 0 ||
		(r.fast.claims.MeetsOwner(p.ID.Session.Member) && !r.opts.Faults.Fast.SessionsCommute) ||
		(r.fast.claims.MeetsOwners() && r.opts.Faults.Fast.SessionsMeetAll)
}

// evaluate asks for the reply to an entry, with those to the same proposer.
func (r *Replica) evaluate(to consensus.MemberID, e consensus.Entry) {
	f := &r.fast
	n := len(f.evaluations)
	if n == 0 || f.evaluations[n-1].Message.To != to {
		f.evaluations = append(f.evaluations, Evaluation{Message: consensus.Message{
			Kind: consensus.MsgFast, From: r.opts.ID, To: to, Term: r.hard.term, Config: r.configs.ID(),
		}})
		n++
	}
	last := &f.evaluations[n-1]
	last.Entries = append(last.Entries, e)
	last.Message.Verdicts = append(last.Message.Verdicts, consensus.Verdict{
		Attempt: consensus.Attempt{Proposal: e.Proposal, Revision: e.ExactRevision},
	})
}

// flushVerdicts tells proposers what the leader did not take the fast way, those in a row to one of them in one message.
func (r *Replica) flushVerdicts() {
	f := &r.fast
	for i := 0; i < len(f.verdicts); {
		m := consensus.Message{Kind: consensus.MsgFast, To: f.verdicts[i].to}
		for ; i < len(f.verdicts) && f.verdicts[i].to == m.To; i++ {
			m.Verdicts = append(m.Verdicts, f.verdicts[i].verdict)
		}
		r.out.sendInTerm(m)
	}
	f.verdicts = f.verdicts[:0]
	if len(f.evaluations) > 0 {
		r.out.Evaluate = f.evaluations
		f.evaluations = nil
	}
}
