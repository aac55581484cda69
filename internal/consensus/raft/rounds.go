package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// A leader lease depends on promises: for some time after a message from the leader, a member helps to elect no other (Raft
// thesis, section 6.4.1). A promise travels with each echo of a round, in microseconds, for members may have other settings
// than the leader: another election timeout, ticks of another length, or no leader lease at all, as in a rolling restart. The
// leader counts for each voter the promise of that voter, from the moment at which the echoed round began, and the lease ends
// when the promises of a quorum do. A promise outlives the term and, on disk with the hard state, the process: a member that
// starts again under other settings keeps it.

// tickMicros is the length of a tick.
func (o *Options) tickMicros() uint64 { return max(1, o.TickMicros) }

// promise is the time that this member promises by its settings, in microseconds.
func (o *Options) promise() uint64 {
	if !o.LeaderLease {
		return 0
	}
	return uint64(o.ElectionTicks) * o.tickMicros()
}

// leaseTicks is the number of the leader's ticks for which a promise protects it, from the beginning of the echoed round: the
// promise, less the granularity of ticks, twice, and the drift of clocks.
func (l *leader) leaseTicks(patience uint64) uint64 {
	if l.opts.Dropped[rules.OwnLeaseTicks] {
		patience = uint64(l.opts.ElectionTicks) * l.opts.tickMicros()
	}
	ticks := min(patience, filter.MaxNumber) / l.opts.tickMicros()
	return ticks - min(ticks, 2+ticks/8)
}

// leaseHolds reports whether no other member can have been elected yet.
func (l *leader) leaseHolds() bool {
	return l.opts.LeaderLease && !l.rounds.barred && l.clock.now < l.reached(l.leaseEnd) && l.started()
}

// leaseEnd is the tick until which a member promised to elect no other.
func (l *leader) leaseEnd(id consensus.MemberID) uint64 {
	if id == l.opts.ID {
		return filter.MaxNumber
	}
	if p := l.peer(id); p != nil {
		return p.LeaseEnd
	}
	return 0
}

// noteEcho notes the promise that came with an echo. It counts from the latest round that this member echoed.
func (l *leader) noteEcho(id consensus.MemberID, round, patience uint64) {
	p := l.peer(id)
	if p == nil {
		return
	}
	if ticks := l.leaseTicks(patience); ticks > 0 {
		if at, known := l.rounds.started.Of(round); known { // the tick of no round is known without a leader lease
			p.LeaseEnd = max(p.LeaseEnd, at+ticks)
		}
	}
}

// beginRound begins a round, at most one per Step: it leaves at the end of the Step, after all reads of the Step.
func (l *leader) beginRound() {
	if l.rounds.open {
		return
	}
	l.rounds.last++
	l.rounds.open = true
	if l.opts.LeaderLease {
		l.rounds.started.Add(l.rounds.last, l.clock.now, uint64(2*l.opts.ElectionTicks))
	}
}

// endRound notes that the messages of the last round have left.
func (l *leader) endRound() { l.rounds.open, l.reads.heard = false, false }

// confirmed returns the highest round that a quorum has echoed.
func (l *leader) confirmed() uint64 { return l.reached(l.echoOf) }

func (l *leader) echoOf(id consensus.MemberID) uint64 {
	if id == l.opts.ID {
		return l.rounds.last
	}
	if p := l.peer(id); p != nil {
		return p.Round
	}
	return 0
}

// majorityWith reports whether this member and one other are a quorum by themselves.
func (l *leader) majorityWith(other consensus.MemberID) bool {
	return l.reached(func(id consensus.MemberID) uint64 {
		if id == l.opts.ID || id == other {
			return 1
		}
		return 0
	}) == 1
}

// confirmedBy returns the same as confirmed, with asker counted as if it had echoed every round.
func (l *leader) confirmedBy(asker consensus.MemberID) uint64 {
	return l.reached(func(id consensus.MemberID) uint64 {
		if id == asker {
			return l.rounds.last
		}
		return l.echoOf(id)
	})
}

// noteRound notes that a member has echoed a later round than before.
func (l *leader) noteRound(from consensus.MemberID) {
	before := l.reads.word.upto
	l.reads.word.note(l.confirmed(), from, 0)
	l.reads.heard = l.reads.heard || l.reads.word.upto > before
}
