package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// A leader lease depends on promises: for so long after it heard the leader, a member helps to elect nobody else (Raft thesis,
// section 6.4.1). A promise travels with each echo of a round, in microseconds, for members may have other settings than the
// leader: another election timeout, ticks of another length, or no leader lease at all, as in a rolling restart. The leader
// counts for each voter what that voter promised, from the moment at which the echoed round began, and the lease ends when the
// promises of a quorum do. A promise outlives the term and, on disk with the hard state, the process: a member that starts
// again under other settings keeps it.

// rounds are the rounds of messages by which a leader confirms its term: reads wait for their echoes, and the leader lease
// counts from their beginning.
type rounds struct {
	opts  *Options
	clock *clock
	log   *raftlog.Log
	soft  *softState
	peers *peerSet

	last    uint64
	open    bool            // the last round was begun in this Step and has not left yet
	started progress.Starts // for the leader lease
	barred  bool            // a transfer let a member ignore the lease
}

// reset begins the term of a leader.
func (s *rounds) reset() {
	s.last, s.open, s.barred = 0, false, false
	s.started.Clear()
}

// tickMicros is the length of a tick.
func (o *Options) tickMicros() uint64 { return max(1, o.TickMicros) }

// promise is what this member promises by its settings, in microseconds.
func (o *Options) promise() uint64 {
	if !o.LeaderLease {
		return 0
	}
	return uint64(o.ElectionTicks) * o.tickMicros()
}

// leaseTicks is how many of the leader's ticks a promise protects it, from the beginning of the echoed round: less than was
// promised by the granularity of ticks, twice, and by what clocks may drift.
func (s *rounds) leaseTicks(patience uint64) uint64 {
	if s.opts.Faults.OwnLeaseTicks {
		patience = uint64(s.opts.ElectionTicks) * s.opts.tickMicros()
	}
	ticks := min(patience, filter.MaxNumber) / s.opts.tickMicros()
	return ticks - min(ticks, 2+ticks/8)
}

// leaseHolds reports whether no other member can have been elected yet.
func (s *rounds) leaseHolds() bool {
	return s.opts.LeaderLease && !s.barred && s.clock.now < s.peers.reached(s.leaseEnd) && s.log.Commit() >= s.soft.noop
}

// leaseEnd is up to when a member promised to elect nobody else.
func (s *rounds) leaseEnd(id consensus.MemberID) uint64 {
	if id == s.opts.ID {
		return filter.MaxNumber
	}
	if p := s.peers.find(id); p != nil {
		return p.LeaseEnd
	}
	return 0
}

// noteEcho notes what an echo promises. Of the rounds that began before, the latest one that it echoes counts.
func (s *rounds) noteEcho(id consensus.MemberID, round, patience uint64) {
	p := s.peers.find(id)
	if p == nil {
		return
	}
	if ticks := s.leaseTicks(patience); ticks > 0 {
		if at, known := s.started.Of(round); known { // without a leader lease none is
			p.LeaseEnd = max(p.LeaseEnd, at+ticks)
		}
	}
}

// begin begins a round, one per Step at most: it leaves at the end of the Step, after all reads of the Step.
func (s *rounds) begin() {
	if s.open {
		return
	}
	s.last++
	s.open = true
	if s.opts.LeaderLease {
		s.started.Add(s.last, s.clock.now, uint64(2*s.opts.ElectionTicks))
	}
}

// end notes that what belongs to the last round has left.
func (s *rounds) end() { s.open = false }

// confirmed returns the highest round that a quorum has echoed.
func (s *rounds) confirmed() uint64 { return s.peers.reached(s.echoed) }

func (s *rounds) echoed(id consensus.MemberID) uint64 {
	if id == s.opts.ID {
		return s.last
	}
	if p := s.peers.find(id); p != nil {
		return p.Round
	}
	return 0
}

// majority reports whether this member and one other are a quorum by themselves.
func (s *rounds) majority(other consensus.MemberID) bool {
	return s.peers.reached(func(id consensus.MemberID) uint64 {
		if id == s.opts.ID || id == other {
			return 1
		}
		return 0
	}) == 1
}

// confirmedBy returns the same as confirmed, if asker counts as one that echoed every round.
func (s *rounds) confirmedBy(asker consensus.MemberID) uint64 {
	return s.peers.reached(func(id consensus.MemberID) uint64 {
		if id == asker {
			return s.last
		}
		return s.echoed(id)
	})
}
