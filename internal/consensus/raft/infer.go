package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// The inferred commit. A member that proposed an entry need not wait for the leader to say that it committed: it counts
// by itself who holds the entry. Every voter that acknowledges it to the leader tells its proposer too, and the leader
// says how far its own disk is. With three voters the leader's word and the proposer's own disk are a majority: one
// round trip. It is Raft's own rule, counted elsewhere: an entry of the current term, durable on a majority of each set
// of voters, is committed, and so is all before it.
//
// It counts by the configuration of this member's log. Should the leader's log have gone on to another one, that one
// was appended only after this one had committed, and any two majorities of neighbours meet. While a change is not
// applied here, or is joint, nothing is inferred.

// holding is how far a member said that its log is durable and equal to the log of this term's leader.
type holding struct {
	id    consensus.MemberID
	index consensus.Index
}

// owe notes, on the leader, that the proposer of an entry counts who holds it.
func (r *Replica) owe(proposer consensus.MemberID, index consensus.Index) {
	if proposer == consensus.NoMember || proposer == r.opts.ID || !r.configs.Config().IsVoter(proposer) {
		return
	}
	if p := r.peer(proposer); p != nil {
		p.Awaits = index
	}
}

// tellProposers tells those who proposed what is acknowledged to the leader, up to known, and had not been before.
func (r *Replica) tellProposers(known consensus.Index, after bool) {
	from := max(r.told, r.log.Commit()) + 1
	if from > known {
		return
	}
	r.told = known
	if !r.configs.Votes() {
		return
	}
	var last consensus.MemberID // they come in runs
	entries := r.log.Slice(from, known)
	for i := range entries {
		proposer := entries[i].Proposer
		if proposer == last || proposer == consensus.NoMember || proposer == r.opts.ID || proposer == r.leader ||
			entries[i].Term != r.term || !r.configs.Config().IsVoter(proposer) {
			continue
		}
		last = proposer
		if !slices.Contains(r.telling, proposer) {
			r.telling = append(r.telling, proposer)
		}
	}
	for _, id := range r.telling {
		r.send(consensus.Message{Kind: consensus.MsgHolds, To: id, Match: r.log.MarkAt(known)}, after)
	}
	r.telling = r.telling[:0]
}

// hold takes note of what another member, or the leader, holds durably in this term.
func (r *Replica) hold(id consensus.MemberID, index consensus.Index) {
	if r.role != Follower || index == 0 {
		return
	}
	for i := range r.holdings {
		if r.holdings[i].id == id {
			r.holdings[i].index = max(r.holdings[i].index, index)
			return
		}
	}
	r.holdings = append(r.holdings, holding{id, index})
}

// held is how far a member is known to hold the leader's log.
func (r *Replica) held(id consensus.MemberID) uint64 {
	if id == r.opts.ID {
		return uint64(min(r.log.Durable(), r.matched))
	}
	for i := range r.holdings {
		if r.holdings[i].id == id {
			return uint64(r.holdings[i].index)
		}
	}
	return 0
}

// inferCommit commits what a majority is known to hold.
func (r *Replica) inferCommit() {
	if len(r.holdings) == 0 || r.role != Follower || r.matched <= r.log.Commit() || !r.configs.Stable() {
		return
	}
	index := min(consensus.Index(r.agreed(r.held)), r.matched)
	if term, ok := r.log.Term(index); !ok || index <= r.log.Commit() || (term != r.term && !r.opts.Faults.InferOldTerm) {
		return
	}
	own := uint64(0)
	entries := r.log.Slice(r.log.Commit()+1, index)
	for i := range entries {
		if entries[i].Proposer == r.opts.ID {
			own++
		}
	}
	if own > 0 || len(r.forwarded) > 0 { // else nobody waits here, and the leader's word brings larger batches
		r.inferred += own
		r.out.Inferred = &[2]consensus.Index{r.log.Commit(), index}
		r.commitTo(index)
	}
}

// Inferred returns how many entries that this member proposed it found committed before the leader told it, since it
// started.
func (r *Replica) Inferred() uint64 { return r.inferred }

// forgetHoldings begins a term.
func (r *Replica) forgetHoldings() {
	r.holdings, r.told = r.holdings[:0], 0
}
