package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// A linearizable read costs no log entry (Raft thesis, section 6.4), only the certainty that no other leader had
// committed more when the read arrived. Its index is the leader's last, not its commit index: a write may have been
// answered, by counting acknowledgements elsewhere, before the leader knows that it committed. The index is handed
// out once a quorum has echoed a round that began after the read arrived, and once the log has committed that far
// under this leader: after an election the same index could name another prefix.
//
// The question of a voter counts as its echo: it had voted in no later term when the question left, so that nobody whom
// such a vote elected can have committed anything before. With three voters a follower's question, and
// the leader's being in office, are a majority, and no round is needed: one round trip.

// pendingRead waits for both. Indexes never fall along the queue.
type pendingRead struct {
	from  consensus.MemberID
	id    uint64
	index consensus.Index
	round uint64 // zero under a leader lease
	asker bool   // from counts as one that echoed
}

// readQueue is a queue that reuses its memory.
type readQueue struct {
	queue []pendingRead
	head  int
}

func (q *readQueue) waiting() []pendingRead { return q.queue[q.head:] }

func (q *readQueue) pop() {
	q.head++
	switch {
	case q.head == len(q.queue):
		q.queue, q.head = q.queue[:0], 0
	case q.head >= 1024 && q.head*2 >= len(q.queue):
		q.queue, q.head = slices.Delete(q.queue, 0, q.head), 0
	}
}

// openRound begins a round, one per Step at most: it leaves at the end of the Step, after all reads of the Step.
func (r *Replica) openRound() {
	if r.roundOpen {
		return
	}
	r.round++
	r.roundOpen = true
	if r.opts.LeaderLease {
		r.rounds = append(r.rounds, roundStart{r.round, r.now})
		r.forgetRounds()
	}
}

func (r *Replica) read(ids []uint64, spread bool) {
	switch {
	case r.role == Leader:
		for _, id := range ids {
			r.enqueueRead(id, r.opts.ID, false)
		}
	case r.leader != consensus.NoMember:
		r.toLeader.spread = r.toLeader.spread || spread
		for _, id := range ids {
			r.toLeader.reads = append(r.toLeader.reads, consensus.ReadIndex{ID: id})
		}
	default:
		r.out.FailedReads = append(r.out.FailedReads, ids...)
	}
}

func (r *Replica) handleRead(m *consensus.Message) {
	if r.role != Leader {
		r.send(consensus.Message{Kind: consensus.MsgReadReply, To: m.From, Reads: m.Reads, Reject: true}, false)
		return
	}
	for i := range m.Reads {
		r.enqueueRead(m.Reads[i].ID, m.From, m.Term <= r.term)
	}
	if m.Query != 0 {
		r.handleLogQuery(m)
	}
}

func (r *Replica) enqueueRead(id uint64, from consensus.MemberID, asker bool) {
	read := pendingRead{from: from, id: id, index: r.log.Last(), asker: asker}
	if r.opts.Faults.Fast.CommitAsReadIndex {
		read.index = r.log.Commit()
	}
	if !r.leaseHolds() && !r.opts.Faults.SkipReadRound && !(asker && r.majority(from)) {
		r.openRound()
		read.round = r.round
		r.reads.queue = append(r.reads.queue, read)
		return
	}
	r.sure.queue = append(r.sure.queue, read)
}

// confirmed returns the highest round that a quorum has echoed.
func (r *Replica) confirmed() uint64 { return r.agreed(r.echoed) }

func (r *Replica) echoed(id consensus.MemberID) uint64 {
	if id == r.opts.ID {
		return r.round
	}
	if p := r.peer(id); p != nil {
		return p.Round
	}
	return 0
}

// majority reports whether this member and one other are a quorum by themselves.
func (r *Replica) majority(other consensus.MemberID) bool {
	return r.agreed(func(id consensus.MemberID) uint64 {
		if id == r.opts.ID || id == other {
			return 1
		}
		return 0
	}) == 1
}

// confirmedBy returns the same as confirmed, if asker counts as one that echoed every round.
func (r *Replica) confirmedBy(asker consensus.MemberID) uint64 {
	return r.agreed(func(id consensus.MemberID) uint64 {
		if id == asker {
			return r.round
		}
		return r.echoed(id)
	})
}

// answerReads hands out what is confirmed and committed, in the order of arrival.
func (r *Replica) answerReads() {
	if r.log.Commit() < r.noop {
		return
	}
	for q := &r.sure; len(q.waiting()) > 0 && q.waiting()[0].index <= r.log.Commit(); q.pop() {
		r.answerRead(&q.waiting()[0])
	}
	if q := &r.reads; len(q.waiting()) > 0 {
		confirmed := r.confirmed()
		for len(q.waiting()) > 0 && q.waiting()[0].index <= r.log.Commit() && r.isConfirmed(&q.waiting()[0], confirmed) {
			r.answerRead(&q.waiting()[0])
			q.pop()
		}
	}
	if len(r.answer.Reads) > 0 {
		r.flushAnswers()
	}
}

func (r *Replica) isConfirmed(read *pendingRead, confirmed uint64) bool {
	return read.round <= confirmed || (read.asker && read.round <= r.confirmedBy(read.from))
}

// answerRead answers here, or gathers the answers to one member, as long as they come in a row, in one message.
func (r *Replica) answerRead(read *pendingRead) {
	answer := consensus.ReadIndex{ID: read.id, Index: read.index}
	if read.from == r.opts.ID {
		r.out.Reads = append(r.out.Reads, answer)
		return
	}
	if len(r.answer.Reads) > 0 && r.answer.To != read.from {
		r.flushAnswers()
	}
	r.answer.To = read.from
	r.answer.Reads = append(r.answer.Reads, answer)
}

func (r *Replica) flushAnswers() {
	r.answer.Kind = consensus.MsgReadReply
	r.send(r.answer, r.termPending())
	r.answer = consensus.Message{}
}

// failReads tells everybody who waits that this member leads no more.
func (r *Replica) failReads() {
	for _, q := range []*readQueue{&r.sure, &r.reads} {
		for _, read := range q.waiting() {
			if read.from == r.opts.ID {
				r.out.FailedReads = append(r.out.FailedReads, read.id)
				continue
			}
			r.send(consensus.Message{
				Kind: consensus.MsgReadReply, To: read.from, Reject: true, Reads: []consensus.ReadIndex{{ID: read.id}},
			}, false)
		}
		*q = readQueue{queue: q.queue[:0]}
	}
	r.rounds = r.rounds[:0]
}

// handleReadReply takes the leader's answers to forwarded reads; what was given up meanwhile is not answered twice.
func (r *Replica) handleReadReply(m *consensus.Message) {
	if m.From != r.leader {
		r.dropped.count(RefusedReadAnswer) // what another leader was asked was given up with it
		return
	}
	for _, answer := range m.Reads {
		at := slices.Index(r.forwarded, answer.ID)
		if at < 0 {
			continue
		}
		r.forwarded = slices.Delete(r.forwarded, at, at+1)
		if m.Reject {
			r.out.FailedReads = append(r.out.FailedReads, answer.ID)
		} else {
			r.out.Reads = append(r.out.Reads, answer)
		}
	}
}

// failForwarded gives up the reads that a leader, no longer followed, has not answered.
func (r *Replica) failForwarded() {
	r.out.FailedReads = append(r.out.FailedReads, r.forwarded...)
	r.forwarded = r.forwarded[:0]
}
