package raft

import "github.com/quorate/quorate/internal/consensus"

// A leader lease rests on promises: for so long after it heard the leader, a member helps to elect nobody else (Raft thesis,
// section 6.4.1). A promise travels with each echo of a round, in microseconds, for members may have other settings than the
// leader: another election timeout, ticks of another length, or no leader lease at all, as in a rolling restart. The leader
// counts for each voter what that voter promised, from the moment at which the echoed round began, and the lease ends when the
// promises of a quorum do. A promise outlives the term and, on disk with the hard state, the process: a member that starts
// again under other settings keeps it.

// roundStart remembers when a round began, for the promises that its echoes bring.
type roundStart struct {
	round uint64
	at    uint64
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

// keepPromise notes, at the start, what was promised before, and what is promised from now on.
func (r *Replica) keepPromise(hard *consensus.HardState) {
	r.hardPromise = hard.Promise
	r.promise = max(r.opts.promise(), hard.Promise)
	if hard.Term > 0 {
		// When the leader was heard last is forgotten. One tick more: the first may come at once.
		r.patientUntil = (r.promise+r.opts.tickMicros()-1)/r.opts.tickMicros() + 1
		if r.promise == 0 {
			r.patientUntil = 0
		}
	}
}

// endPromise lets go, once nobody can rely on it any more, of a longer promise of an earlier life.
func (r *Replica) endPromise() {
	if own := r.opts.promise(); r.promise > own && r.now >= r.patientUntil {
		r.promise = own
	}
}

// promised reports whether a leader may still hold a lease that rests on the patience of this member: it helps to elect
// nobody meanwhile, itself included. Only a vote that a leader asked for ends it early.
func (r *Replica) promised() bool { return r.now < r.patientUntil }

// patience is the promise that an echo carries: none before it is on the disk.
func (r *Replica) patience() uint64 {
	if own := r.opts.promise(); own > 0 && r.hardPromise >= own && r.promiseSeq <= r.doneSeq {
		return own
	}
	return 0
}

// leaseTicks is how many of the leader's ticks a promise protects it, from the beginning of the echoed round: less than was
// promised by the granularity of ticks, twice, and by what clocks may drift.
func (r *Replica) leaseTicks(patience uint64) uint64 {
	if r.opts.Faults.OwnLeaseTicks {
		patience = uint64(r.opts.ElectionTicks) * r.opts.tickMicros()
	}
	ticks := min(patience, maxNumber) / r.opts.tickMicros()
	return ticks - min(ticks, 2+ticks/8)
}

// leaseHolds reports whether no other member can have been elected yet.
func (r *Replica) leaseHolds() bool {
	return r.opts.LeaderLease && !r.leaseBarred && r.now < r.agreed(r.leaseEnd) && r.log.Commit() >= r.noop
}

// leaseEnd is up to when a member promised to elect nobody else.
func (r *Replica) leaseEnd(id consensus.MemberID) uint64 {
	if id == r.opts.ID {
		return maxNumber
	}
	if p := r.peer(id); p != nil {
		return p.LeaseEnd
	}
	return 0
}

// noteEcho notes what an echo promises. Of the rounds that began before, the latest one that it echoes counts.
func (r *Replica) noteEcho(id consensus.MemberID, round, patience uint64) {
	p := r.peer(id)
	if p == nil || !r.opts.LeaderLease {
		return
	}
	for i := len(r.rounds) - 1; i >= 0; i-- {
		if r.rounds[i].round <= round {
			if end := r.rounds[i].at + r.leaseTicks(patience); r.leaseTicks(patience) > 0 {
				p.LeaseEnd = max(p.LeaseEnd, end)
			}
			return
		}
	}
}

// forgetRounds drops rounds that began too long ago to protect anything.
func (r *Replica) forgetRounds() {
	n := 0
	for n < len(r.rounds) && len(r.rounds)-n > maxRoundsNoted {
		n++
	}
	for n < len(r.rounds) && r.now-r.rounds[n].at > uint64(2*r.opts.ElectionTicks) {
		n++
	}
	r.rounds = append(r.rounds[:0], r.rounds[n:]...)
}

// maxRoundsNoted bounds the rounds whose beginning is remembered: an echo of an older one promises nothing.
const maxRoundsNoted = 1024
