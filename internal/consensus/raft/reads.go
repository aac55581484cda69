package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/readindex"
)

// A linearizable read costs no log entry (Raft thesis, section 6.4), only the certainty that no other leader had
// committed more when the read arrived. Its index is handed out once a quorum has echoed a round that began after the read
// arrived, and once the log has committed that far under this leader: after an election the same index could name another
// prefix. It is not the commit index: a write may have been answered, by counting acknowledgements elsewhere, before the
// leader knows that it committed. It is the leader's last index, or less, once voters have said how far their disks are
// (ADR 0035): in this leader's term an entry was answered only if a majority has it on disk, or if the leader fixed its
// revision and has it on disk itself. A voter that has not said may have all that was sent to it.
//
// The question of a voter counts as its echo: it had voted in no later term when the question left, so that nobody whom
// such a vote elected can have committed anything before. With three voters a follower's question, and
// that the leader leads, are a majority, and no round is needed: one round trip.

// leaderReads are the reads that wait at the leader, its own and those of others, in the order of arrival.
type leaderReads struct {
	opts    *Options
	log     *raftlog.Log
	configs *configs.History
	hard    *hardState
	soft    *softState
	out     *outbox
	rounds  *rounds
	waiting readindex.Waiting
	reply   consensus.Message // to the reader that is being answered
	early   consensus.Index   // the last entry of this term that may be answered before it has committed
}

func (s *leaderReads) add(id uint64, from consensus.MemberID, asker bool) {
	faults, commit := &s.opts.Faults, s.log.Commit()
	read := readindex.Pending{From: from, ID: id, Index: s.log.Last(), Floor: max(commit, s.soft.noop), Asker: asker}
	if faults.Fast.ReadCommitIndex {
		read.Index = commit
	}
	if faults.ReadBelowNoop {
		read.Floor = 0
	}
	if s.configs.Stable() || faults.ReadWhileChanging {
		read.Config = s.configs.ID()
	}
	sure := s.rounds.leaseHolds() || faults.SkipReadRound || (asker && s.rounds.majority(from))
	if !sure || read.Index > commit {
		s.rounds.begin()
		read.Round = s.rounds.last
	}
	s.waiting.Add(read, sure)
}

// answer hands out what is confirmed and committed, in the order of arrival.
func (s *leaderReads) answer() {
	if s.log.Commit() < s.soft.noop {
		return
	}
	s.waiting.Answer(s.log.Commit(), func(read *readindex.Pending) bool {
		return read.Round <= s.rounds.confirmed() || (read.Asker && read.Round <= s.rounds.confirmedBy(read.From))
	}, s.answerOne)
	if len(s.reply.Reads) > 0 {
		s.flush()
	}
}

// echoed notes the round that a member echoes and, if it says so, how far its log is on disk: whatever it acknowledged to
// anybody before it heard that round lies at or below, unless it has lost some of that.
func (s *leaderReads) echoed(p *progress.Peer, round uint64, durable consensus.Index) {
	p.Round = max(p.Round, round)
	if from := p.EndRound; durable > 0 && round > from && (!p.Lost(durable, round) || s.opts.Faults.TrustDenial) {
		p.End, p.EndRound = durable, round
		if s.configs.Stable() || s.opts.Faults.ReadWhileChanging {
			s.waiting.Narrow(from, round, s.configs.ID(), s.mayBeAnswered)
		}
	}
}

// mayBeAnswered returns the last entry that can have been answered before a round began.
func (s *leaderReads) mayBeAnswered(round uint64) consensus.Index {
	end := consensus.Index(s.rounds.peers.reached(func(id consensus.MemberID) uint64 {
		p := s.rounds.peers.find(id)
		switch {
		case id == s.opts.ID:
			return uint64(s.log.Durable())
		case p == nil:
			return uint64(s.log.Last())
		case p.EndRound >= round || s.opts.Faults.ReadOldEnds:
			return uint64(p.End)
		}
		return uint64(p.SentTo)
	}))
	if s.opts.Faults.ReadForgetsAnswers {
		return end
	}
	return max(end, min(s.early, s.log.Durable()))
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
	s.waiting.Fail(func(read *readindex.Pending) {
		if read.From == s.opts.ID {
			s.out.FailedReads = append(s.out.FailedReads, read.ID)
			return
		}
		s.out.send(consensus.Message{
			Kind: consensus.MsgReadReply, To: read.From, Reject: true, Reads: []consensus.ReadIndex{{ID: read.ID}},
		}, false)
	})
	s.rounds.started.Clear()
	s.early = 0
}
