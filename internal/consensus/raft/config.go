package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
)

// configChanged acts on another configuration in force.
func (r *Replica) configChanged() {
	in := r.InForce()
	r.out.Config = &in
	r.fast.ResetTally()
	if r.soft.role == Leader {
		r.peers.sync()
	}
	r.elect.delayCampaign()
}

// memberRemoved notes that a committed change removed a member for ever.
func (r *Replica) memberRemoved(id consensus.MemberID) {
	r.configs.AddTombstone(id)
	if id == r.opts.ID && !r.elect.removed {
		r.elect.removed = true
		r.out.event(Removed{By: r.opts.ID})
	}
	if p := r.peers.find(id); p != nil && r.soft.role == Leader {
		p.LeavesAt = r.clock.now + uint64(r.opts.ElectionTicks)
		r.out.sendInTerm(consensus.Message{Kind: consensus.MsgRemoved, To: id})
	}
}

// handleRemoved obeys whoever says that this member was removed, but for a member whose leader, or as leader its quorum, is
// alive: it learns from its log, or from that leader. A survivor that was recovered apart from a living majority must not stop
// it.
func (r *Replica) handleRemoved(m *consensus.Message) {
	if r.gate.hearsNow() && m.From != r.soft.leader && !r.opts.Faults.BelieveMessages {
		r.stats.dropped.Count(filter.Removal)
		return
	}
	if !r.elect.removed {
		r.elect.removed = true
		r.out.event(Removed{By: m.From})
	}
}
