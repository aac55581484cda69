package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/readindex"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// A linearizable read costs no log entry (Raft thesis, section 6.4), only the certainty that no other leader had committed more
// when the read arrived. Its index is handed out once a quorum has echoed a round that began after the read arrived, and once
// the log has committed that far under this leader: after an election the same index could name another prefix. It is not the
// commit index: a write may have been answered, by counting acknowledgements at its proposer, before the leader knows that it
// committed. It is the leader's last index, or less, once voters have reported the durable ends of their logs (ADR 0035): in
// this leader's term an entry was answered only if a majority has it on disk, or if the leader fixed its revision and has it on
// disk itself. A voter that has not reported may have all entries that were sent to it.
//
// A voter's own question counts as its echo: it had voted in no later term when the question left, so that no leader elected
// with its vote can have committed an entry before. With three voters a follower's question and the leader are a majority, and
// no round is needed: one round trip.

func (l *leader) addRead(id uint64, from consensus.MemberID, asker bool) {
	dropped, commit := &l.opts.Dropped, l.log.Commit()
	read := readindex.Pending{From: from, ID: id, Index: l.log.Last(), Floor: max(commit, l.noop), Asker: asker}
	if dropped[rules.ReadCommitIndex] {
		read.Index = commit
	}
	if dropped[rules.ReadBelowNoop] {
		read.Floor = 0
	}
	if l.configs.Stable() || dropped[rules.ReadWhileChanging] {
		read.Config = l.configs.ID()
	}
	sure := l.leaseHolds() || dropped[rules.SkipReadRound] || (asker && l.majorityWith(from))
	if !sure || read.Index > commit {
		l.beginRound()
		read.Round = l.rounds.last
	}
	l.reads.waiting.Add(read, sure)
}

// answerReads hands out the reads that are confirmed and committed, in the order of arrival.
func (l *leader) answerReads() {
	if !l.started() {
		return
	}
	l.reads.waiting.Answer(l.log.Commit(), func(read *readindex.Pending) bool {
		return read.Round <= l.confirmed() || (read.Asker && read.Round <= l.confirmedBy(read.From))
	}, l.answerRead)
	if len(l.reads.reply.Reads) > 0 {
		l.flushReply()
	}
}

// noteEnd notes the round that a member echoes and, if the echo reports it, the durable end of its log: all entries that the
// member acknowledged, to any member, before it heard that round lie at or below the end, unless it has lost some of them.
func (l *leader) noteEnd(p *progress.Peer, round uint64, durable consensus.Index) {
	if round > p.Round {
		p.Round = round
		l.noteRound(p.ID)
	}
	if from := p.EndRound; durable > 0 && round > from && (!p.Lost(durable, round) || l.opts.Dropped[rules.TrustDenial]) {
		p.End, p.EndRound = durable, round
		if l.configs.Stable() || l.opts.Dropped[rules.ReadWhileChanging] {
			l.reads.waiting.Narrow(from, round, l.configs.ID(), l.mayBeAnswered)
		}
	}
}

// mayBeAnswered returns the last entry that can have been answered before a round began.
func (l *leader) mayBeAnswered(round uint64) consensus.Index {
	end := consensus.Index(l.reached(func(id consensus.MemberID) uint64 {
		p := l.peer(id)
		switch {
		case id == l.opts.ID:
			return uint64(l.log.Durable())
		case p == nil:
			return uint64(l.log.Last())
		case p.EndRound >= round || l.opts.Dropped[rules.ReadOldEnds]:
			return uint64(p.End)
		}
		return uint64(p.SentTo)
	}))
	if l.opts.Dropped[rules.ReadForgetsAnswers] {
		return end
	}
	return max(end, min(l.reads.early, l.log.Durable()))
}

// answerRead answers here, or adds the answer to a message to the reader; consecutive answers to one member share a message.
func (l *leader) answerRead(read *readindex.Pending) {
	answer := consensus.ReadIndex{ID: read.ID, Index: read.Index}
	if read.From == l.opts.ID {
		l.out.Reads, l.out.ReadsWaited = append(l.out.Reads, answer), l.readsWaited()
		return
	}
	if len(l.reads.reply.Reads) > 0 && l.reads.reply.To != read.From {
		l.flushReply()
	}
	l.reads.reply.To = read.From
	l.reads.reply.Reads = append(l.reads.reply.Reads, answer)
}

func (l *leader) flushReply() {
	l.reads.reply.Kind, l.reads.reply.Waited = consensus.MsgReadReply, l.readsWaited()
	l.sendInTerm(l.reads.reply)
	l.reads.reply = consensus.Message{}
}

// failReads answers all waiting reads that this member leads no more.
func (l *leader) failReads() {
	l.reads.waiting.Fail(func(read *readindex.Pending) {
		if read.From == l.opts.ID {
			l.out.FailedReads = append(l.out.FailedReads, read.ID)
			return
		}
		l.send(consensus.Message{
			Kind: consensus.MsgReadReply, To: read.From, Reject: true, Reads: []consensus.ReadIndex{{ID: read.ID}},
		}, false)
	})
}

// readsWaited returns for which member the reads waited that are answered in this Step: the one that completed a round, or
// the one that completed a commit.
func (l *leader) readsWaited() consensus.Waited {
	if l.reads.heard {
		return l.reads.word.waited
	}
	return l.out.Commit.Waited
}
