package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Package fast decides on the fast path. This file receives and sends its messages, and appends its entries.

// view returns the state of this replica that the fast path reads.
func (r *Replica) view() fast.View {
	v := fast.View{
		Now: r.clock.now, Term: r.hard.term, Leader: r.leader, Follows: r.role == Follower,
		Installing: r.installing != nil,
	}
	if l := r.lead; l != nil {
		v.Started = l.started()
		v.Leaving = l.transfers() || l.feedsSuccessor()
	}
	return v
}

// proposeFast sends proposals to the leader and to all other voters at once, or, where the fast path is closed, to the
// leader alone.
func (r *Replica) proposeFast(proposals []consensus.Proposal) {
	if !r.fast.Open() || r.role != Follower || r.leader == consensus.NoMember ||
		r.boundTo != (consensus.ConfigID{}) || !r.configs.Stable() {
		r.propose(proposals)
		return
	}
	r.fast.Propose(proposals)
	r.forwardOffers(proposals)
}

// handleRecord records proposals, and answers for each once the records are durable.
func (r *Replica) handleRecord(m *consensus.Message) {
	v := r.view()
	if m.From == r.opts.ID {
		r.fast.RecordOwn(&v, m)
		return
	}
	verdicts, accepted := r.fast.Record(&v, m)
	reply := consensus.Message{Kind: consensus.MsgRecorded, To: m.From, Verdicts: verdicts}
	if accepted || r.opts.Dropped[rules.WitnessVolatile] {
		r.send(reply, !r.opts.Dropped[rules.WitnessVolatile])
		return
	}
	r.sendInTerm(reply)
}

// handleFastPropose appends proposals to the leader's log, at an exact revision where that is possible.
func (r *Replica) handleFastPropose(m *consensus.Message) {
	if r.lead == nil || (m.Config != r.configs.ID() && !r.opts.Dropped[rules.AnyConfig]) {
		r.handlePropose(m)
		return
	}
	v := r.view()
	r.lead.admitFast(&v, m)
}

// askForOrphans asks the leader about proposals whose records this member has kept for long.
func (r *Replica) askForOrphans() {
	v := r.view()
	ids := r.fast.Orphans(&v)
	if len(ids) == 0 {
		return
	}
	m := consensus.Message{Kind: consensus.MsgOrphans, To: r.leader, Verdicts: make([]consensus.Verdict, len(ids))}
	for i, id := range ids {
		m.Verdicts[i].Proposal = id
	}
	if r.lead != nil {
		r.lead.handleOrphans(&m)
		return
	}
	r.sendInTerm(m)
}

// handleOrphans aborts the proposals that were asked about and have not succeeded.
func (l *leader) handleOrphans(m *consensus.Message) {
	if !l.started() || l.transfers() || !l.fast.Update() {
		return
	}
	for i := range m.Verdicts {
		if id := m.Verdicts[i].Proposal; l.fast.Abort(id) {
			l.appendEntry(consensus.Entry{Kind: consensus.EntryAbort, Proposal: id})
			if !l.fast.Update() {
				return
			}
		}
	}
}
