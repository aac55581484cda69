package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// The inferred commit. A member that proposed an entry need not wait for the leader to say that it committed: it counts the
// acknowledgements itself. Every voter that acknowledges the entry to the leader sends the same to its proposer, and the leader
// tells it how much of the log is on its own disk. With three voters the leader's message and the proposer's own disk are a
// majority: one round trip. It is Raft's own rule, counted at another member: an entry of the current term, durable on a
// majority of each set of voters, is committed, and so are all entries before it.
//
// It counts by the configuration of this member's log. If the leader's log has gone on to another one, the leader appended that
// one only after this one had committed, and any two majorities of neighbouring configurations intersect. While a change is not
// applied here, or is joint, the member infers nothing.

// reportMatch reports to the proposers of entries the acknowledgements to the leader, up to known, that they have not had yet.
func (r *Replica) reportMatch(known consensus.Index, after bool) {
	from := max(r.follow.reported, r.log.Commit()) + 1
	if from > known {
		return
	}
	r.follow.reported = known
	if !r.configs.Votes() {
		return
	}
	var last consensus.MemberID // entries of one proposer come in runs
	entries := r.log.Slice(from, known)
	for i := range entries {
		proposer := entries[i].Proposer
		if proposer == last || proposer == consensus.NoMember || proposer == r.opts.ID || proposer == r.leader ||
			entries[i].Term != r.hard.term || !r.configs.Config().IsVoter(proposer) {
			continue
		}
		last = proposer
		if !slices.Contains(r.telling, proposer) {
			r.telling = append(r.telling, proposer)
		}
	}
	for _, id := range r.telling {
		r.send(consensus.Message{Kind: consensus.MsgAcknowledged, To: id, Match: r.log.PositionAt(known)}, after)
	}
	r.telling = r.telling[:0]
}

// noteDurable notes how much of the log another member, or the leader, has on disk in this term.
func (r *Replica) noteDurable(id consensus.MemberID, index consensus.Index, diskTook uint32) {
	if r.role == Follower && index > 0 && r.follow.logs.Note(id, index) {
		r.noteLog(id, diskTook)
	}
}

// counts reports whether acknowledgements that this member counts by itself may commit something.
func (r *Replica) counts() bool {
	return r.follow.logs.Len() > 0 && r.follow.matched > r.log.Commit() && r.configs.Stable()
}

// logOf returns up to which index a member's log is known to equal the leader's.
func (r *Replica) logOf(id consensus.MemberID) uint64 {
	if id == r.opts.ID {
		return uint64(min(r.log.Durable(), r.follow.matched))
	}
	return uint64(r.follow.logs.Of(id))
}

// inferCommit commits the entries that a majority is known to have.
func (r *Replica) inferCommit() {
	if !r.counts() {
		return
	}
	index := min(consensus.Index(r.reached(r.logOf)), r.follow.matched)
	term, ok := r.log.Term(index)
	if !ok || index <= r.log.Commit() || (term != r.hard.term && !r.opts.Dropped[rules.InferOldTerm]) {
		return
	}
	own := uint64(0)
	entries := r.log.Slice(r.log.Commit()+1, index)
	for i := range entries {
		if entries[i].Proposer == r.opts.ID {
			own++
		}
	}
	if own > 0 || len(r.forwards.forwarded) > 0 { // else no proposal here waits, and the leader's notice brings larger batches
		r.inferred += own
		r.out.Inferred = &[2]consensus.Index{r.log.Commit(), index}
		r.commitFor(index, r.follow.word.of(uint64(index)))
	}
}

// noteLog notes that more of the leader's log is on the disk of a member, at a follower that counts by itself.
func (r *Replica) noteLog(from consensus.MemberID, diskTook uint32) {
	if r.counts() {
		r.follow.word.note(r.reached(r.logOf), from, diskTook)
	}
}
