package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// advanceCommit commits what a majority holds durably, but only by counting entries of the own term: an earlier one
// may still be overwritten, even on a majority (Raft paper, section 5.4.2 and figure 8).
func (r *Replica) advanceCommit() {
	index := consensus.Index(r.agreed(r.holds))
	if index <= r.log.Commit() {
		return
	}
	if index < r.noop && !r.opts.Faults.CommitOldTerm {
		return
	}
	r.commitTo(index)
}

// holds is how far a member's log is durable and equal to the leader's. The leader's own disk counts like another's.
func (r *Replica) holds(id consensus.MemberID) uint64 {
	if id == r.opts.ID {
		if r.opts.Faults.AckBeforeDurable {
			return uint64(r.log.Last())
		}
		return uint64(r.log.Durable())
	}
	if p := r.peer(id); p != nil && !p.Denied {
		return uint64(p.Match)
	}
	return 0
}

// agreed returns what a majority, of each set of voters, has reached.
func (r *Replica) agreed(reached func(consensus.MemberID) uint64) uint64 {
	return r.configs.Agreed(reached, r.opts.Faults.CountSelf && r.role == Leader)
}

// quorumHeard reports whether the leader heard a majority within an election timeout (Raft thesis, section 6.2). While it
// can take back the joint configuration that it is in, the outgoing voters are enough: nobody is elected without them,
// and nobody but this leader can abort the change if it is the incoming ones that died.
func (r *Replica) quorumHeard() bool {
	if r.agreed(r.heardLately) == 1 {
		return true
	}
	if r.log.Commit() < r.noop || r.configs.MayAbort() != consensus.ReasonNone || r.configs.Last() != r.configs.InForce() {
		return false
	}
	return r.heardOf(r.configs.Config().Outgoing)
}

// heardOf reports whether a majority of voters was heard within an election timeout.
func (r *Replica) heardOf(voters []consensus.MemberID) bool {
	var heard []uint64
	for _, id := range voters {
		heard = append(heard, r.heardLately(id))
	}
	return quorum.Agreed(heard) == 1
}

func (r *Replica) heardLately(id consensus.MemberID) uint64 {
	if id == r.opts.ID {
		return 1
	}
	if p := r.peer(id); p != nil && r.now-p.HeardAt < uint64(r.opts.ElectionTicks) {
		return 1
	}
	return 0
}

// commitTo notes that everything up to index is committed, and which configurations are with it.
func (r *Replica) commitTo(index consensus.Index) {
	if index <= r.log.Commit() {
		return
	}
	size := r.log.CommitTo(index)
	if r.role == Leader {
		r.uncommitted -= size
	}
	r.advanceConfigs()
}

// advanceConfigs reports what the commit index brought for the configurations, and tells the members that were removed.
func (r *Replica) advanceConfigs() {
	for _, m := range r.configs.CommitTo(r.log.Commit()) {
		if m.Committed {
			r.event(ConfigCommitted{ID: m.ID})
		}
		if m.Settled {
			r.event(ConfigSettled{ID: m.ID})
		}
		for _, id := range m.Removed {
			r.bury(id)
		}
	}
	r.reviseConfig()
}

// bury notes that a committed change removed a member for ever.
func (r *Replica) bury(id consensus.MemberID) {
	r.configs.Bury(id)
	if id == r.opts.ID && !r.removed {
		r.removed = true
		r.event(Removed{By: r.opts.ID})
	}
	if p := r.peer(id); p != nil && r.role == Leader {
		p.LeavesAt = r.now + uint64(r.opts.ElectionTicks)
		r.sendAsLeader(consensus.Message{Kind: consensus.MsgRemoved, To: id})
	}
}

// handleRemoved obeys whoever says that this member was removed, but for a member whose leader, or as leader its quorum, is
// alive: its log, or that leader, would tell. A survivor that was recovered apart from a living majority must not stop it.
func (r *Replica) handleRemoved(m *consensus.Message) {
	if r.hearsNow() && m.From != r.leader && !r.opts.Faults.BelieveMessages {
		r.dropped.count(RefusedRemoval)
		return
	}
	if !r.removed {
		r.removed = true
		r.event(Removed{By: m.From})
	}
}
