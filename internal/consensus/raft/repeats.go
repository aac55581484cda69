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
	earlier, later mark
	logged         map[consensus.ProposalID]consensus.Index // the last entry of each, up to upTo; nil while nothing is late
	upTo           consensus.Index
}

// mark is the end of the log at a tick.
type mark struct {
	at   uint64
	last consensus.Index
}

// newRepeats begins a leader's term, with the end of its log. All that it inherits is late: proposers repeat to it what its
// predecessor may have logged.
func newRepeats(now uint64, last consensus.Index) repeats {
	m := mark{at: now, last: last}
	return repeats{earlier: m, later: m}
}

// tick moves the marks, so that the earlier one is half an election timeout old at least: much less than a proposer's patience.
func (r *repeats) tick(now uint64, last consensus.Index, electionTicks int) {
	if now-r.later.at >= uint64(electionTicks+1)/2 {
		r.earlier, r.later = r.later, mark{at: now, last: last}
	}
}

// look takes in what was logged since the last look, of up to limit proposals.
func (r *repeats) look(log *raftlog.Log, limit int) {
	if r.logged == nil || r.upTo <= log.Commit() {
		r.logged, r.upTo = map[consensus.ProposalID]consensus.Index{}, log.Commit()
	}
	last := min(log.Last(), r.upTo+consensus.Index(max(0, limit-len(r.logged))))
	if r.upTo >= last {
		return
	}
	entries := log.Slice(r.upTo+1, last)
	for i := range entries {
		if e := &entries[i]; e.Kind == consensus.EntryCommand && !e.Proposal.IsZero() {
			r.logged[e.Proposal] = e.Index
		}
	}
	r.upTo = last
}
