package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/readindex"
)

// A linearizable read costs no log entry (Raft thesis, section 6.4), only the certainty that no other leader had
// committed more when the read arrived. Its index is the leader's last, not its commit index: a write may have been
// answered, by counting acknowledgements elsewhere, before the leader knows that it committed. The index is handed
// out once a quorum has echoed a round that began after the read arrived, and once the log has committed that far
// under this leader: after an election the same index could name another prefix.
//
// The question of a voter counts as its echo: it had voted in no later term when the question left, so that nobody whom
// such a vote elected can have committed anything before. With three voters a follower's question, and
// that the leader leads, are a majority, and no round is needed: one round trip.

// leaderReads are the reads that wait at the leader, its own and those of others, in the order of arrival.
type leaderReads struct {
	opts   *Options
	log    *raftlog.Log
	hard   *hardState
	soft   *softState
	out    *outbox
	rounds *rounds

	queue readindex.Queue   // that wait for a round
	sure  readindex.Queue   // that were confirmed as they came, and wait for the log to commit
	reply consensus.Message // to the reader that is being answered
}

func (s *leaderReads) add(id uint64, from consensus.MemberID, asker bool) {
	read := readindex.Pending{From: from, ID: id, Index: s.log.Last(), Asker: asker}
	if s.opts.Faults.Fast.ReadCommitIndex {
		read.Index = s.log.Commit()
	}
	if !s.rounds.leaseHolds() && !s.opts.Faults.SkipReadRound && !(asker && s.rounds.majority(from)) {
		s.rounds.begin()
		read.Round = s.rounds.last
		s.queue.Push(read)
		return
	}
	s.sure.Push(read)
}

// answer hands out what is confirmed and committed, in the order of arrival.
func (s *leaderReads) answer() {
	if s.log.Commit() < s.soft.noop {
		return
	}
	for q := &s.sure; len(q.Waiting()) > 0 && q.Waiting()[0].Index <= s.log.Commit(); q.Pop() {
		s.answerOne(&q.Waiting()[0])
	}
	if q := &s.queue; len(q.Waiting()) > 0 {
		confirmed := s.rounds.confirmed()
		for len(q.Waiting()) > 0 && q.Waiting()[0].Index <= s.log.Commit() && s.isConfirmed(&q.Waiting()[0], confirmed) {
			s.answerOne(&q.Waiting()[0])
			q.Pop()
		}
	}
	if len(s.reply.Reads) > 0 {
		s.flush()
	}
}

func (s *leaderReads) isConfirmed(read *readindex.Pending, confirmed uint64) bool {
	return read.Round <= confirmed || (read.Asker && read.Round <= s.rounds.confirmedBy(read.From))
}

// answerOne answers here, or gathers the answers to one member, as long as they come in a row, in one message.
func (s *leaderReads) answerOne(read *readindex.Pending) {
	answer := consensus.ReadIndex{ID: read.ID, Index: read.Index}
	if read.From == s.opts.ID {
		s.out.Reads = append(s.out.Reads, answer)
		return
	}
	if len(s.reply.Reads) > 0 && s.reply.To != read.From {
		s.flush()
	}
	s.reply.To = read.From
	s.reply.Reads = append(s.reply.Reads, answer)
}

func (s *leaderReads) flush() {
	s.reply.Kind = consensus.MsgReadReply
	s.out.sendInTerm(s.reply)
	s.reply = consensus.Message{}
}

// fail answers all waiting reads that this member leads no more.
func (s *leaderReads) fail() {
	for _, q := range []*readindex.Queue{&s.sure, &s.queue} {
		for _, read := range q.Waiting() {
			if read.From == s.opts.ID {
				s.out.FailedReads = append(s.out.FailedReads, read.ID)
				continue
			}
			s.out.send(consensus.Message{
				Kind: consensus.MsgReadReply, To: read.From, Reject: true, Reads: []consensus.ReadIndex{{ID: read.ID}},
			}, false)
		}
		q.Clear()
	}
	s.rounds.started.Clear()
}
