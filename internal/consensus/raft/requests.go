package raft

import "github.com/quorate/quorate/internal/consensus"

// propose takes this member's own proposals: into the log, to the leader, or back.
func (r *Replica) propose(proposals []consensus.Proposal) {
	switch {
	case r.soft.role == Leader:
		r.admission.admit(proposals, r.opts.ID)
	case r.soft.leader != consensus.NoMember:
		r.forwards.propose(proposals)
	default:
		r.out.refuseAll(proposals, r.opts.ID, consensus.ReasonNoLeader)
	}
}

// handlePropose takes proposals that were forwarded to this member.
func (r *Replica) handlePropose(m *consensus.Message) {
	if r.soft.role == Leader {
		r.admission.admitBound(m)
		return
	}
	// Nothing is forwarded twice: two members could send it back and forth.
	r.out.refuseAll(m.Proposals, m.From, consensus.ReasonNoLeader)
}

// read takes this member's own reads: it answers them as the leader, or forwards them.
func (r *Replica) read(ids []uint64, spread bool) {
	switch {
	case r.soft.role == Leader:
		for _, id := range ids {
			r.reads.add(id, r.opts.ID, false)
		}
	case r.soft.leader != consensus.NoMember:
		r.forwards.read(ids, spread)
	default:
		r.out.FailedReads = append(r.out.FailedReads, ids...)
	}
}

// handleRead takes reads that were forwarded to this member.
func (r *Replica) handleRead(m *consensus.Message) {
	if r.soft.role != Leader {
		r.out.send(consensus.Message{Kind: consensus.MsgReadReply, To: m.From, Reads: m.Reads, Reject: true}, false)
		return
	}
	for i := range m.Reads {
		r.reads.add(m.Reads[i].ID, m.From, m.Term <= r.hard.term)
	}
	if m.Query != 0 {
		r.forwards.handleLogQuery(m)
	}
}
