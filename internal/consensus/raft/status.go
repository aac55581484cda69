package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Status is a copy of a replica's state; the replica does not write to it any more.
type Status struct {
	ID      consensus.MemberID
	Role    Role
	Term    consensus.Term
	Vote    consensus.MemberID
	Leader  consensus.MemberID // NoMember if unknown
	Commit  consensus.Index
	Applied consensus.Index
	Durable consensus.Index
	// FirstIndex..LastIndex are the entries that the log holds; it holds none if FirstIndex > LastIndex.
	FirstIndex consensus.Index
	LastIndex  consensus.Index
	LastTerm   consensus.Term

	Config          consensus.Config // in force
	ConfigID        consensus.ConfigID
	Protocol        consensus.Protocol // of the change; zero for the first configuration
	ConfigCommitted bool
	Spared          []consensus.MemberID // by the last input Spare
	ConfigSettled   bool                 // committed, not joint, and known to be so by enough members
	IsLearner       bool
	Removed         bool // for ever: this member should stop

	// The leader's state.
	Transferee  consensus.MemberID
	TermStarted bool           // an entry of this term has committed
	Progress    []PeerProgress // of every other member, sorted by id
}

// PeerProgress is the progress of another member, as the leader knows it.
type PeerProgress struct {
	ID           consensus.MemberID
	State        string // probe, replicate or snapshot
	Match        consensus.Index
	Next         consensus.Index
	RecentActive bool   // the leader heard from it within an election timeout
	HeardTicks   uint64 // since its last message, or since this leader began to replicate to it
	Paused       bool
	Learner      bool
	Leaving      bool // removed by a committed change; MsgRemoved was sent
	CaughtUp     bool // near enough to the leader's log to become a voter
}

// Status returns a copy of the replica's state.
func (r *Replica) Status() Status {
	in := r.InForce()
	last := r.log.LastPosition()
	s := Status{
		ID: r.opts.ID, Role: r.role, Term: r.hard.term, Vote: r.hard.vote, Leader: r.leader,
		Commit: r.log.Commit(), Applied: r.log.Applied(), Durable: r.log.Durable(),
		FirstIndex: r.log.Base().Index + 1, LastIndex: last.Index, LastTerm: last.Term,
		Config: in.Config, ConfigID: in.ID, Protocol: in.Protocol, ConfigCommitted: in.Committed, ConfigSettled: in.Settled,
		IsLearner: in.Config.IsLearner(r.opts.ID), Removed: r.elect.removed, Spared: r.spared,
	}
	l := r.lead
	if l == nil {
		return s
	}
	s.Transferee, s.TermStarted = l.transfer.target, l.started()
	for _, p := range l.peers {
		s.Progress = append(s.Progress, PeerProgress{
			ID: p.ID, State: p.State.String(), Match: p.Match, Next: p.Next, RecentActive: l.active(p),
			Paused: p.Paused(), Learner: in.Config.IsLearner(p.ID), Leaving: p.Leaving, CaughtUp: l.caughtUp(p),
			HeardTicks: r.clock.now - p.HeardAt,
		})
	}
	return s
}

// LeavesLeadership reports whether a member is to leave leadership to others: it is cordoned, or spared.
func (s *Status) LeavesLeadership(id consensus.MemberID) bool {
	return s.Config.LeavesLeadership(s.Spared, id)
}

// Heir returns the voter to which this leader can hand over at once, or NoMember: an active one that has caught up and is
// neither cordoned nor spared; of several the one with most of the log.
func (s *Status) Heir() consensus.MemberID {
	best := PeerProgress{}
	for i := range s.Progress {
		p := &s.Progress[i]
		able := p.RecentActive && p.CaughtUp && slices.Contains(s.Config.Voters, p.ID) && !s.LeavesLeadership(p.ID)
		if able && (best.ID == consensus.NoMember || p.Match > best.Match) {
			best = *p
		}
	}
	return best.ID
}
