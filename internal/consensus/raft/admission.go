package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// admitBound admits commands only if their proposer knows the configuration in force. Changes name the configuration that they
// expect themselves.
func (l *leader) admitBound(m *consensus.Message) {
	if m.Config == (consensus.ConfigID{}) || m.Config == l.configs.ID() {
		l.admit(m.Proposals, m.From)
		return
	}
	for i := range m.Proposals {
		p := &m.Proposals[i]
		if p.Kind == consensus.EntryConfig {
			l.admit(m.Proposals[i:i+1], m.From)
			continue
		}
		l.refuse(p.ID, m.From, consensus.ReasonStaleConfig)
	}
}

// admitFast appends proposals: at an exact revision if no rule of the fast path refuses it, as slow entries otherwise.
func (l *leader) admitFast(v *fast.View, m *consensus.Message) {
	for i := range m.Proposals {
		p := &m.Proposals[i]
		admitted, why := l.fast.Admit(v, p, m.Term)
		switch why {
		case consensus.RefusedNot:
			admitted.Entry.Index, admitted.Entry.Term = l.appendEntry(admitted.Entry), v.Term
			l.countedBy(p.Proposer, admitted.Entry.Index)
			l.fast.Appended(v, m.From, &admitted)
			l.reads.early = admitted.Entry.Index
			continue
		case consensus.RefusedKnown:
			// The proposer learns the result when the logged entry is applied. A second entry would change nothing.
		default:
			l.admit(m.Proposals[i:i+1], m.From)
		}
		l.refuseFast(p.ID, m.From, why)
	}
}

// admit appends proposals to the leader's log, in the order in which they are given (primary order).
func (l *leader) admit(proposals []consensus.Proposal, from consensus.MemberID) {
	for i := range proposals {
		p := &proposals[i]
		if l.opts.Dropped[rules.LogAnyOrder] {
			p = &proposals[len(proposals)-1-i]
		}
		if reason := l.admitOne(p, from); reason != consensus.ReasonNone {
			l.refuse(p.ID, from, reason)
		}
	}
}

func (l *leader) admitOne(p *consensus.Proposal, from consensus.MemberID) consensus.RefusalReason {
	switch {
	case l.transfers() || (p.Kind == consensus.EntryCommand && l.feedsSuccessor()):
		return consensus.ReasonNoLeader
	case p.Kind != consensus.EntryCommand && p.Kind != consensus.EntryConfig:
		return consensus.ReasonBadRequest
	case p.Kind == consensus.EntryCommand && from != l.opts.ID && l.opts.Readable != nil && !l.opts.Readable(p.Payload):
		return consensus.ReasonBadRequest // its own commands were checked before they were encoded
	case l.log.Uncommitted() > 0 && l.log.Uncommitted()+len(p.Payload) > l.opts.MaxUncommittedBytes,
		l.log.Full() && p.Kind == consensus.EntryCommand:
		return consensus.ReasonBusy
	case p.Kind == consensus.EntryConfig:
		return l.proposeChange(p)
	}
	index, waits := l.waiting(p.ID)
	if !waits {
		index = l.appendEntry(consensus.Entry{
			Kind: p.Kind, Proposal: p.ID, Proposer: p.Proposer, Payload: p.Payload,
		})
	}
	l.countedBy(p.Proposer, index)
	return consensus.ReasonNone
}

// waiting returns the entry of a proposal that is logged and not committed. It looks only while commits are late: no proposer
// repeats proposals before.
func (l *leader) waiting(id consensus.ProposalID) (consensus.Index, bool) {
	r := &l.repeats
	if l.log.Commit() >= r.earlier.last {
		r.logged, r.upTo = nil, 0
		return 0, false
	}
	if id.IsZero() {
		return 0, false
	}
	r.look(&l.log, l.opts.MaxRepeats)
	index := r.logged[id]
	return index, index > l.log.Commit()
}

// countedBy notes, on the leader, that the proposer of an entry counts the acknowledgements of the entry.
func (l *leader) countedBy(proposer consensus.MemberID, index consensus.Index) {
	if proposer == consensus.NoMember || proposer == l.opts.ID || !l.configs.Config().IsVoter(proposer) {
		return
	}
	if p := l.peer(proposer); p != nil {
		p.Awaits = index
	}
}
