package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// repeats knows on a leader which proposals are logged and wait long for their commit. A proposer repeats what stays without
// an answer, to a new leader at once. On links whose queue is longer than its patience, a second entry would send each
// payload once more to every follower, behind the first, and change nothing.
//
// Nothing is kept as long as commits come in time, for then nobody repeats.
type repeats struct {
	opts  *Options
	clock *clock
	log   *raftlog.Log

	earlier, later mark
	logged         map[consensus.ProposalID]consensus.Index // the last entry of each, up to upTo; nil while nothing is late
	upTo           consensus.Index
}

// mark is the end of the log at a tick.
type mark struct {
	at   uint64
	last consensus.Index
}

// reset begins a leader's term. All that it inherits is late: proposers repeat to it what its predecessor may have logged.
func (r *repeats) reset() {
	m := mark{at: r.clock.now, last: r.log.Last()}
	r.earlier, r.later = m, m
	r.logged, r.upTo = nil, 0
}

// tick moves the marks, so that the earlier one is half an election timeout old at least: much less than a proposer's patience.
func (r *repeats) tick() {
	if r.clock.now-r.later.at >= uint64(r.opts.ElectionTicks+1)/2 {
		r.earlier, r.later = r.later, mark{at: r.clock.now, last: r.log.Last()}
	}
}

// waiting returns the entry of a proposal that was logged and is not committed, as far as there may be repeats.
func (r *repeats) waiting(id consensus.ProposalID) (consensus.Index, bool) {
	if r.log.Commit() >= r.earlier.last {
		r.logged, r.upTo = nil, 0
		return 0, false
	}
	if id.IsZero() {
		return 0, false
	}
	r.look()
	index := r.logged[id]
	return index, index > r.log.Commit()
}

// look takes in what was logged since the last look.
func (r *repeats) look() {
	if r.logged == nil || r.upTo <= r.log.Commit() {
		r.logged, r.upTo = map[consensus.ProposalID]consensus.Index{}, r.log.Commit()
	}
	last := min(r.log.Last(), r.upTo+consensus.Index(max(0, r.opts.MaxRepeats-len(r.logged))))
	if r.upTo >= last {
		return
	}
	entries := r.log.Slice(r.upTo+1, last)
	for i := range entries {
		if e := &entries[i]; e.Kind == consensus.EntryCommand && !e.Proposal.IsZero() {
			r.logged[e.Proposal] = e.Index
		}
	}
	r.upTo = last
}
