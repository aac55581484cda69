package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// admission takes proposals into the leader's log.
type admission struct {
	opts     *Options
	log      *raftlog.Log
	configs  *configs.History
	out      *outbox
	peers    *peerSet
	repl     *replication
	transfer *transfers
	changes  *changes
	reads    *leaderReads
	fast     *fast.Path
	repeats  *repeats
}

// admitBound admits commands only if their proposer believes in the configuration in force. Changes say themselves what
// they expect.
func (a *admission) admitBound(m *consensus.Message) {
	if m.Config == (consensus.ConfigID{}) || m.Config == a.configs.ID() {
		a.admit(m.Proposals, m.From)
		return
	}
	for i := range m.Proposals {
		p := &m.Proposals[i]
		if p.Kind == consensus.EntryConfig {
			a.admit(m.Proposals[i:i+1], m.From)
			continue
		}
		a.out.refuse(p.ID, m.From, consensus.ReasonStaleConfig)
	}
}

// admitFast appends proposals, at once fixed to a revision if nothing stands in the way, and else as any other.
func (a *admission) admitFast(v *fast.View, m *consensus.Message) {
	for i := range m.Proposals {
		p := &m.Proposals[i]
		admitted, why := a.fast.Admit(v, p, m.Term)
		switch why {
		case consensus.RefusedNot:
			admitted.Entry.Index, admitted.Entry.Term = a.repl.appendEntry(admitted.Entry), v.Term
			a.countedBy(p.Proposer, admitted.Entry.Index)
			a.fast.Appended(v, m.From, &admitted)
			a.reads.early = admitted.Entry.Index
			continue
		case consensus.RefusedKnown:
			// Whoever proposed it learns of its end when it is applied. A second entry would change nothing.
		default:
			a.admit(m.Proposals[i:i+1], m.From)
		}
		a.out.refuseFast(p.ID, m.From, why)
	}
}

// admit appends proposals to the leader's log, in the order in which they are given (primary order).
func (a *admission) admit(proposals []consensus.Proposal, from consensus.MemberID) {
	for i := range proposals {
		p := &proposals[i]
		if a.opts.Faults.LogAnyOrder {
			p = &proposals[len(proposals)-1-i]
		}
		if reason := a.admitOne(p); reason != consensus.ReasonNone {
			a.out.refuse(p.ID, from, reason)
		}
	}
}

func (a *admission) admitOne(p *consensus.Proposal) consensus.RefusalReason {
	switch {
	case a.transfer.active() || (p.Kind == consensus.EntryCommand && a.transfer.feedsSuccessor()):
		return consensus.ReasonNoLeader
	case p.Kind != consensus.EntryCommand && p.Kind != consensus.EntryConfig:
		return consensus.ReasonBadRequest
	case a.log.Uncommitted() > 0 && a.log.Uncommitted()+len(p.Payload) > a.opts.MaxUncommittedBytes,
		a.log.Full() && p.Kind == consensus.EntryCommand:
		return consensus.ReasonBusy
	case p.Kind == consensus.EntryConfig:
		return a.changes.propose(p)
	}
	index, waits := a.repeats.waiting(p.ID)
	if !waits {
		index = a.repl.appendEntry(consensus.Entry{
			Kind: p.Kind, Proposal: p.ID, Proposer: p.Proposer, Payload: p.Payload,
		})
	}
	a.countedBy(p.Proposer, index)
	return consensus.ReasonNone
}

// countedBy notes, on the leader, that the proposer of an entry counts its acknowledgements.
func (a *admission) countedBy(proposer consensus.MemberID, index consensus.Index) {
	if proposer == consensus.NoMember || proposer == a.opts.ID || !a.configs.Config().IsVoter(proposer) {
		return
	}
	if p := a.peers.find(proposer); p != nil {
		p.Awaits = index
	}
}
