package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
)

// The fast path is decided in package fast. Here its messages are received and sent, and its entries appended.

// view is what the fast path sees of this replica.
func (r *Replica) view() fast.View {
	v := fast.View{
		Now: r.clock.now, Term: r.hard.term, Leader: r.soft.leader, Follows: r.soft.role == Follower,
		Installing: r.follower.installing != nil,
	}
	if r.soft.role == Leader {
		v.Started = r.log.Commit() >= r.soft.noop
		v.Leaving = r.transfer.active() || r.transfer.feedsSuccessor()
	}
	return v
}

// proposeFast sends proposals to the leader and to all other voters at once, or, where the fast path is closed, to the
// leader alone.
func (r *Replica) proposeFast(proposals []consensus.Proposal) {
	if !r.fast.Open() || r.soft.role != Follower || r.soft.leader == consensus.NoMember ||
		r.soft.boundTo != (consensus.ConfigID{}) || !r.configs.Stable() {
		r.propose(proposals)
		return
	}
	r.fast.Propose(proposals)
	r.forwards.offer(proposals)
}

// handleRecord takes proposals into the pool, and answers for each once that is durable.
func (r *Replica) handleRecord(m *consensus.Message) {
	v := r.view()
	if m.From == r.opts.ID {
		r.fast.RecordOwn(&v, m)
		return
	}
	verdicts, accepted := r.fast.Record(&v, m)
	after := (accepted || r.hard.pending()) && !r.opts.Faults.Fast.WitnessVolatile
	r.out.send(consensus.Message{Kind: consensus.MsgRecorded, To: m.From, Verdicts: verdicts}, after)
}

// handleFastPropose takes proposals into the leader's log, at an exact revision where that is possible.
func (r *Replica) handleFastPropose(m *consensus.Message) {
	if r.soft.role != Leader || (m.Config != r.configs.ID() && !r.opts.Faults.Fast.AnyConfig) {
		r.handlePropose(m)
		return
	}
	v := r.view()
	r.admission.admitFast(&v, m)
}

// askForOrphans asks the leader what became of records that were kept for long.
func (r *Replica) askForOrphans() {
	v := r.view()
	ids := r.fast.Orphans(&v)
	if len(ids) == 0 {
		return
	}
	m := consensus.Message{Kind: consensus.MsgOrphans, To: r.soft.leader, Verdicts: make([]consensus.Verdict, len(ids))}
	for i, id := range ids {
		m.Verdicts[i].Proposal = id
	}
	if r.soft.role == Leader {
		r.handleOrphans(&m)
		return
	}
	r.out.sendInTerm(m)
}

// handleOrphans aborts proposals that have not succeeded.
func (r *Replica) handleOrphans(m *consensus.Message) {
	started := r.soft.role == Leader && r.log.Commit() >= r.soft.noop
	if !started || r.transfer.active() || !r.fast.Update() {
		return
	}
	for i := range m.Verdicts {
		if id := m.Verdicts[i].Proposal; r.fast.Abort(id) {
			r.repl.appendEntry(consensus.Entry{Kind: consensus.EntryAbort, Proposal: id})
			if !r.fast.Update() {
				return
			}
		}
	}
}
