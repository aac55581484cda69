package raft

import (
	"math"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// A read in one round trip. With more than three voters a leader that confirms itself for a follower's question waits for
// others while the follower waits for it. So the follower asks them, too, at the same time as the leader: each says which
// term it is in. The leader says its last index at once. A majority, of the reader, the leader and those that answered, in
// no later term than the leader's after the question left: nobody whom a later vote elected can have committed anything
// before. Then the read is as good as confirmed by a round of the leader's, and the reader waits until it knows that
// the log has committed that far: what is committed here is the beginning of the leader's log, whichever the term.
//
// A majority is enough without the leader, too, where it is nearer (PQR, HotStorage 2019): each says how far its log goes, and
// whether it holds proposals of the fast path. What was answered before the question is in the log of one of them, or among
// what it holds. If none holds any, the farthest of their logs is the index, and if that has committed here, the read is
// answered; else the leader's word is waited for.
//
// All count by one configuration, which is settled on each, or the leader's own answer is waited for: it comes anyway.

// askVoters asks the voters beside the leader, if this member's configuration is settled, and returns the name of the question.
func (r *Replica) askVoters(reads []consensus.ReadIndex) (question uint64) {
	if !r.stable() || !r.config().IsVoter(r.opts.ID) {
		return 0
	}
	for i := range reads {
		question = max(question, reads[i].ID)
	}
	r.question = max(r.question, question)
	for _, id := range r.config().Voters {
		if id != r.opts.ID && id != r.leader {
			r.send(consensus.Message{Kind: consensus.MsgVouch, To: id, Round: question}, false)
		}
	}
	return question
}

// handleVouch tells the term of this member, how far its log goes, and whether that is all it knows. A term that is higher
// than the leader's does not vouch for it.
func (r *Replica) handleVouch(m *consensus.Message) {
	r.send(consensus.Message{
		Kind: consensus.MsgVouched, To: m.From, Round: m.Round, Mark: r.log.lastMark(), Reject: !r.knowsAll(),
	}, false)
}

// knowsAll reports whether every write that was answered before now, and that this member knows of, is in its log.
func (r *Replica) knowsAll() bool {
	return (r.fast.pool.Len() == 0 || r.opts.Faults.Fast.ReadPastPool) && r.stable() && r.config().IsVoter(r.opts.ID)
}

func (r *Replica) handleVouched(m *consensus.Message) {
	if m.Term > r.term || m.Round > r.question {
		return // the second is about a question of a life before this one
	}
	v := vouch{id: m.From, question: m.Round, last: m.Mark.Index, all: !m.Reject, config: m.Config}
	for i := range r.vouches {
		if old := &r.vouches[i]; old.id == m.From {
			if old.question <= m.Round {
				*old = v
			}
			return
		}
	}
	r.vouches = append(r.vouches, v)
}

// vouch is the last question that a voter has answered without being in a later term. Questions grow, so that it has
// vouched for all before it as well.
type vouch struct {
	id       consensus.MemberID
	question uint64
	last     consensus.Index // of its log then
	all      bool            // it held nothing that its log did not
	config   consensus.ConfigID
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
	r.readFromMajority()
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

// readFromMajority answers the reads for which a majority told how far the log goes, and all of that has committed.
func (r *Replica) readFromMajority() {
	if len(r.forwarded) == 0 || len(r.vouches) == 0 || !r.knowsAll() {
		return
	}
	keep := r.forwarded[:0]
	for _, id := range r.forwarded {
		if index, told := r.toldBy(id); told && index <= r.log.commit {
			r.out.Reads = append(r.out.Reads, consensus.ReadIndex{ID: id, Index: index})
		} else {
			keep = append(keep, id)
		}
	}
	r.forwarded = keep
}

// toldBy returns how far the logs of a majority went when they were asked, those of the least, this member among them.
func (r *Replica) toldBy(read uint64) (consensus.Index, bool) {
	lasts := r.scratch[:0]
	for i := range r.vouches {
		v := &r.vouches[i]
		if v.question >= read && v.all && v.config == r.configID() && r.config().IsVoter(v.id) {
			lasts = append(lasts, uint64(v.last))
		}
	}
	r.scratch = lasts
	others := quorum.Majority(len(r.config().Voters)) - 1
	if len(lasts) < others || others == 0 {
		return 0, false
	}
	slices.Sort(lasts)
	return max(consensus.Index(lasts[others-1]), r.log.last()), true
}
