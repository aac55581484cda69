package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/readindex"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// There are two ways to confirm a linearizable read. The leader's round is in reads.go. The other one asks a majority (PQR,
// HotStorage 2019), which saves a far reader the wait for the leader's round: the reader asks all other voters, the leader
// among them, for the ends of their logs and whether they have records of the fast path.
//
// A write that was answered before the question has either committed in the log, so that every majority has a member with it in
// its log, or succeeded on the fast path, so that every majority has a member that logged it or has a record of it. So if no
// member of a majority has records, the write lies at or below the greatest of their last indexes. The read is answered once
// this member knows that its own log is committed up to there. That index is a bound of what must be applied, not a position in
// the log of one member, and there is only one committed prefix, whichever term a member learned it in: no trust in the leader
// is needed (ADR 0016).
//
// All voters count by one configuration, which is settled on each of them. Otherwise the reader waits for the leader's answer,
// which comes anyway.

// askVoters asks the voters for the ends of their logs, if this member's configuration is settled, and returns the name of
// the question. The leader is asked by the message that forwards the reads.
func (r *Replica) askVoters(reads []consensus.ReadIndex) (query uint64) {
	if !r.configs.Stable() || !r.configs.Votes() {
		return 0
	}
	for i := range reads {
		query = max(query, reads[i].ID)
	}
	r.forwards.logEnds.Ask(query, r.configs.Config().Voters)
	for _, id := range r.configs.Config().Voters {
		if id != r.opts.ID && id != r.leader {
			question := consensus.LogQuery{Query: query}
			r.send(consensus.Message{Kind: consensus.MsgLogQuery, To: id, LogQuery: question}, false)
		}
	}
	return query
}

// handleLogQuery answers where this member's log ends, and whether every write that it knows of is in it.
func (r *Replica) handleLogQuery(m *consensus.Message) {
	r.send(consensus.Message{
		Kind: consensus.MsgLogQueryReply, To: m.From, Last: r.log.LastPosition(),
		LogQuery: consensus.LogQuery{Query: m.Query, Unlogged: !r.knowsAll()},
	}, false)
}

// knowsAll reports whether every write that was answered before now, and that this member knows of, is in its log.
func (r *Replica) knowsAll() bool {
	return (r.fast.Held() == 0 || r.opts.Dropped[rules.ReadPastPool]) && r.configs.Stable() && r.configs.Votes()
}

func (r *Replica) handleLogQueryReply(m *consensus.Message) {
	if r.configs.Config().IsVoter(m.From) {
		r.forwards.answeredBy = m.From
		r.forwards.logEnds.Note(readindex.Answer{
			Voter: m.From, Query: m.Query, Last: m.Last.Index, Unlogged: m.Unlogged, Term: m.Term, Config: m.Config,
		})
	}
}

// readFromMajority answers the reads for which a majority reported the ends of their logs, if all entries up to there have
// committed here.
func (r *Replica) readFromMajority() {
	if len(r.forwards.forwarded) == 0 || !r.forwards.logEnds.Answered() ||
		(!r.knowsAll() && !r.opts.Dropped[rules.ReadLeaderIndex]) {
		return
	}
	keep, waited := r.forwards.forwarded[:0], r.out.Commit.Waited
	if from := r.forwards.answeredBy; from != consensus.NoMember {
		waited = consensus.Waited{WaitedFor: from}
	}
	for _, id := range r.forwards.forwarded {
		if index, known := r.indexFor(id); known && index <= r.log.Commit() {
			r.out.ReadsWaited = waited
			r.out.Reads = append(r.out.Reads, consensus.ReadIndex{ID: id, Index: index})
		} else {
			keep = append(keep, id)
		}
	}
	r.forwards.forwarded = keep
}

func (r *Replica) indexFor(read uint64) (consensus.Index, bool) {
	if r.opts.Dropped[rules.CountOldAnswers] {
		read = 1
	}
	if r.opts.Dropped[rules.ReadLeaderIndex] {
		if index, known := r.forwards.logEnds.LeaderIndex(read, r.leader, r.hard.term, r.configs.Config().Voters); known {
			return index, true
		}
	}
	return r.forwards.logEnds.Index(read, r.configs.Config().Voters, r.configs.ID(), r.log.Last())
}
