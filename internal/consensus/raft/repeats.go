package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// repeats knows, on a leader, the proposals that are logged and wait long for their commit. A proposer repeats a proposal
// without an answer, to a new leader at once. On links whose queue is longer than the proposer's patience, a second entry would
// send each payload to every follower once more, behind the first, and change nothing.
//
// It keeps nothing while commits come in time: no proposer repeats then.
type repeats struct {
	earlier, later mark
	logged         map[consensus.ProposalID]consensus.Index // the last entry of each, up to upTo; nil while no commit is late
	upTo           consensus.Index
}

// mark is the end of the log at a tick.
type mark struct {
	at   uint64
	last consensus.Index
}

// newRepeats begins a leader's term, with the end of its log. All that it inherits counts as late: proposers repeat to it the
// proposals that its predecessor may have logged.
func newRepeats(now uint64, last consensus.Index) repeats {
	m := mark{at: now, last: last}
	return repeats{earlier: m, later: m}
}

// tick moves the marks, so that the earlier one is at least half an election timeout old: much less than a proposer's patience.
func (r *repeats) tick(now uint64, last consensus.Index, electionTicks int) {
	if now-r.later.at >= uint64(electionTicks+1)/2 {
		r.earlier, r.later = r.later, mark{at: now, last: last}
	}
}

// look adds the entries that were logged since the last look, of up to limit proposals.
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
