package raft

import (
	"math"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// A read in one round trip. With more than three voters a leader that confirms itself for a follower's question waits for
// others while the follower waits for it. So the follower asks them, too, at the same time as the leader: each says which
// term it is in. The leader says its last index at once. A majority, of the reader, the leader and those that answered, in
// no later term than the leader's after the question left: nobody whom a later vote elected can have committed anything
// before. Then the read is as good as confirmed by a round of the leader's, and the reader waits until it knows that
// the log has committed that far: what is committed here is the beginning of the leader's log, whichever the term.
//
// Both count by one configuration, which is settled on the reader, or the leader's own answer is waited for: it comes anyway.

// askVoters asks the voters beside the leader, if the word of some is needed, and returns the name of the question.
func (r *Replica) askVoters(reads []consensus.ReadIndex) (question uint64) {
	if !r.stable() || !r.config().IsVoter(r.opts.ID) {
		return 0
	}
	for i := range reads {
		question = max(question, reads[i].ID)
	}
	r.question = max(r.question, question)
	if !r.majority(r.leader) {
		for _, id := range r.config().Voters {
			if id != r.opts.ID && id != r.leader {
				r.send(consensus.Message{Kind: consensus.MsgVouch, To: id, Round: question}, false)
			}
		}
	}
	return question
}

// handleVouch tells the term of this member. One that is higher than the leader's does not vouch for it.
func (r *Replica) handleVouch(m *consensus.Message) {
	r.send(consensus.Message{Kind: consensus.MsgVouched, To: m.From, Round: m.Round}, false)
}

func (r *Replica) handleVouched(m *consensus.Message) {
	if m.Term > r.term || m.Round > r.question {
		return // the second is about a question of a life before this one
	}
	for i := range r.vouches {
		if r.vouches[i].id == m.From {
			r.vouches[i].question = max(r.vouches[i].question, m.Round)
			return
		}
	}
	r.vouches = append(r.vouches, vouch{m.From, m.Round})
}

// vouch is the last question that a voter has answered without being in a later term. Questions grow, so that it has
// vouched for all before it as well.
type vouch struct {
	id       consensus.MemberID
	question uint64
}

// handleReadIndex takes indexes that nobody has confirmed yet.
func (r *Replica) handleReadIndex(m *consensus.Message) {
	if r.role != Follower || m.From != r.leader || m.Term != r.term || m.Config != r.configID() || !r.stable() {
		return
	}
	for _, answer := range m.Reads {
		if slices.Contains(r.forwarded, answer.ID) {
			r.unconfirmed = append(r.unconfirmed, answer)
		}
	}
}

// confirmReads answers the reads that are confirmed and whose index has committed.
func (r *Replica) confirmReads() {
	if len(r.unconfirmed) == 0 {
		return
	}
	vouched := r.agreed(r.vouchedFor)
	keep := r.unconfirmed[:0]
	for _, read := range r.unconfirmed {
		at := slices.Index(r.forwarded, read.ID)
		switch {
		case at < 0: // answered by the leader meanwhile
		case read.Index > r.log.commit || (read.ID > vouched && !(vouched > 0 && r.opts.Faults.CountOldVouches)):
			keep = append(keep, read)
		default:
			r.forwarded = slices.Delete(r.forwarded, at, at+1)
			r.out.Reads = append(r.out.Reads, read)
		}
	}
	r.unconfirmed = keep
}

func (r *Replica) vouchedFor(id consensus.MemberID) uint64 {
	if id == r.opts.ID || id == r.leader {
		return math.MaxUint64
	}
	for i := range r.vouches {
		if r.vouches[i].id == id {
			return r.vouches[i].question
		}
	}
	return 0
}
