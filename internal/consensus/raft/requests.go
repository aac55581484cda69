package raft

import "github.com/quorate/quorate/internal/consensus"

// propose takes this member's own proposals: into the log, to the leader, or back.
func (r *Replica) propose(proposals []consensus.Proposal) {
	switch {
	case r.soft.role == Leader:
		r.admission.admit(proposals, r.opts.ID)
	case r.soft.leader != consensus.NoMember:
		if r.forwards.box.proposals == nil {
			r.forwards.box.proposals = proposals[:len(proposals):len(proposals)]
		} else {
			r.forwards.box.proposals = append(r.forwards.box.proposals, proposals...)
		}
	default:
		r.out.refuseAll(proposals, r.opts.ID, consensus.ReasonNoLeader)
	}
}

func (r *Replica) handlePropose(m *consensus.Message) {
	if r.soft.role == Leader {
		r.admission.admitBound(m)
		return
	}
	r.out.refuseAll(m.Proposals, m.From, consensus.ReasonNoLeader) // never forwarded twice: two members could play ball
}

func (r *Replica) read(ids []uint64, spread bool) {
	switch {
	case r.soft.role == Leader:
		for _, id := range ids {
			r.reads.add(id, r.opts.ID, false)
		}
	case r.soft.leader != consensus.NoMember:
		r.forwards.box.spread = r.forwards.box.spread || spread
		for _, id := range ids {
			r.forwards.box.reads = append(r.forwards.box.reads, consensus.ReadIndex{ID: id})
		}
	default:
		r.out.FailedReads = append(r.out.FailedReads, ids...)
	}
}

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
