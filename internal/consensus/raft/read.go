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

// pendingRead waits for both. Indexes never fall along the queue.
type pendingRead struct {
	from  consensus.MemberID
	id    uint64
	index consensus.Index
	round uint64 // zero under a leader lease
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

// roundStart remembers when a round began, for the lease it may bring.
type roundStart struct {
	round uint64
	at    uint64
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
	}
}

func (r *Replica) read(ids []uint64) {
	switch {
	case r.role == Leader:
		for _, id := range ids {
			r.enqueueRead(id, r.opts.ID)
		}
	case r.leader != consensus.NoMember:
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
		r.enqueueRead(m.Reads[i].ID, m.From)
	}
}

func (r *Replica) enqueueRead(id uint64, from consensus.MemberID) {
	read := pendingRead{from: from, id: id, index: r.log.last()}
	if !r.leaseHolds() && !r.opts.Faults.SkipReadRound {
		r.openRound()
		read.round = r.round
	}
	r.reads.queue = append(r.reads.queue, read)
}

// leaseHolds reports whether no other member can have been elected yet (Raft thesis, section 6.4.1).
func (r *Replica) leaseHolds() bool {
	return r.opts.LeaderLease && !r.leaseBarred && r.now < r.leaseUntil && r.log.commit >= r.noop
}

// leaseTicks is how long a confirmed round protects the leader: shorter than an election timeout by the granularity of
// ticks, twice, and by what clocks may drift.
func (r *Replica) leaseTicks() uint64 {
	return uint64(max(0, r.opts.ElectionTicks-2-r.opts.ElectionTicks/8))
}

// confirmed returns the highest round that a quorum has echoed.
func (r *Replica) confirmed() uint64 {
	return r.agreed(func(id consensus.MemberID) uint64 {
		if id == r.opts.ID {
			return r.round
		}
		if p := r.peer(id); p != nil {
			return p.Round
		}
		return 0
	})
}

// confirmRounds extends the lease.
func (r *Replica) confirmRounds() {
	if len(r.rounds) == 0 {
		return
	}
	confirmed := r.confirmed()
	done := 0
	for done < len(r.rounds) && r.rounds[done].round <= confirmed {
		r.leaseUntil = max(r.leaseUntil, r.rounds[done].at+r.leaseTicks())
		done++
	}
	r.rounds = slices.Delete(r.rounds, 0, done)
}

// answerReads hands out what is confirmed and committed, in the order of arrival.
func (r *Replica) answerReads() {
	if len(r.reads.waiting()) == 0 || r.log.commit < r.noop {
		return
	}
	confirmed := r.confirmed()
	var reply consensus.Message
	flush := func() {
		if len(reply.Reads) > 0 {
			reply.Kind = consensus.MsgReadReply
			r.send(reply, r.termPending())
			reply = consensus.Message{}
		}
	}
	for {
		waiting := r.reads.waiting()
		if len(waiting) == 0 || waiting[0].round > confirmed || waiting[0].index > r.log.commit {
			break
		}
		read := waiting[0]
		r.reads.pop()
		answer := consensus.ReadIndex{ID: read.id, Index: read.index}
		if read.from == r.opts.ID {
			r.out.Reads = append(r.out.Reads, answer)
			continue
		}
		if reply.To != read.from {
			flush()
			reply.To = read.from
		}
		reply.Reads = append(reply.Reads, answer)
	}
	flush()
}

// failReads tells everybody who waits that this member leads no more.
func (r *Replica) failReads() {
	for _, read := range r.reads.waiting() {
		if read.from == r.opts.ID {
			r.out.FailedReads = append(r.out.FailedReads, read.id)
			continue
		}
		r.send(consensus.Message{
			Kind: consensus.MsgReadReply, To: read.from, Reject: true, Reads: []consensus.ReadIndex{{ID: read.id}},
		}, false)
	}
	r.reads = readQueue{queue: r.reads.queue[:0]}
	r.rounds = r.rounds[:0]
}

// handleReadReply takes the leader's answers to forwarded reads; what was given up meanwhile is not answered twice.
func (r *Replica) handleReadReply(m *consensus.Message) {
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
