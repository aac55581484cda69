package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// There are two ways to confirm a linearizable read. The leader's round is in read.go. The other one asks a majority
// (PQR, HotStorage 2019), which saves a far reader the wait for the leader's round: the reader asks all other voters, the
// leader among them, how far their logs go and whether they hold records of the fast path.
//
// A write that was answered before the question has either committed in the log, so that every majority has a member with
// it in its log, or succeeded on the fast path, so that every majority has a member that logged it or holds a record of it.
// So if no member of a majority holds records, the write lies at or below the greatest of their last indexes. The read is
// answered once this member knows that its own log is committed up to there. Nothing is taken from the leader: that index
// is a bound of what must be applied, not a position in anybody's log, and there is one committed prefix only, whichever
// term it was learned in (ADR 0016).
//
// All count by one configuration, which is settled on each of them. Otherwise the leader's answer, which comes anyway,
// is waited for.

// majorityRead is the last question of this member, and what the voters answered.
type majorityRead struct {
	asked   uint64 // the name of the last question
	answers []logEnd
	scratch []consensus.Index
}

// logEnd is the latest answer of one voter. Questions grow, so that it answers all before it as well.
type logEnd struct {
	id       consensus.MemberID
	query    uint64
	last     consensus.Index // of its log
	unlogged bool            // writes may have been answered that its log does not hold
	term     consensus.Term
	config   consensus.ConfigID
}

// note takes an answer. One to a question that was not asked in this life of the reader counts for nothing.
func (q *majorityRead) note(answer logEnd) {
	if answer.query > q.asked || answer.query == 0 {
		return
	}
	for i := range q.answers {
		if old := &q.answers[i]; old.id == answer.id {
			if old.query <= answer.query {
				*old = answer
			}
			return
		}
	}
	q.answers = append(q.answers, answer)
}

// retain forgets the answers of those who vote no more, so that there are never more answers than voters.
func (q *majorityRead) retain(voters []consensus.MemberID) {
	q.answers = slices.DeleteFunc(q.answers, func(a logEnd) bool { return !slices.Contains(voters, a.id) })
}

// index returns up to where a majority of voters, the reader with a log up to own among them, may have logged what was
// answered before a read was asked for; false while too few have answered.
func (q *majorityRead) index(read uint64, voters []consensus.MemberID, config consensus.ConfigID,
	own consensus.Index) (consensus.Index, bool) {
	lasts := q.scratch[:0]
	for i := range q.answers {
		a := &q.answers[i]
		if a.query >= read && !a.unlogged && a.config == config && slices.Contains(voters, a.id) {
			lasts = append(lasts, a.last)
		}
	}
	q.scratch = lasts
	others := quorum.Majority(len(voters)) - 1
	if len(lasts) < others || others == 0 {
		return 0, false
	}
	slices.Sort(lasts) // those of the least logs are a majority as good as any
	return max(lasts[others-1], own), true
}

// askVoters asks the voters for the ends of their logs, if this member's configuration is settled, and returns the name of
// the question. The leader is asked by the message that forwards the reads.
func (f *forwards) askVoters(reads []consensus.ReadIndex) (query uint64) {
	if !f.configs.Stable() || !f.configs.Votes() {
		return 0
	}
	for i := range reads {
		query = max(query, reads[i].ID)
	}
	f.logEnds.asked = max(f.logEnds.asked, query)
	f.logEnds.retain(f.configs.Config().Voters)
	for _, id := range f.configs.Config().Voters {
		if id != f.opts.ID && id != f.soft.leader {
			f.out.send(consensus.Message{Kind: consensus.MsgLogQuery, To: id, Query: query}, false)
		}
	}
	return query
}

// handleLogQuery tells how far this member's log goes, and whether that is all it knows.
func (f *forwards) handleLogQuery(m *consensus.Message) {
	f.out.send(consensus.Message{
		Kind: consensus.MsgLogQueryReply, To: m.From, Query: m.Query, Last: f.log.LastMark(), Unlogged: !f.knowsAll(),
	}, false)
}

// knowsAll reports whether every write that was answered before now, and that this member knows of, is in its log.
func (f *forwards) knowsAll() bool {
	return (f.fast.Held() == 0 || f.opts.Faults.Fast.ReadPastPool) && f.configs.Stable() && f.configs.Votes()
}

func (f *forwards) handleLogQueryReply(m *consensus.Message) {
	if f.configs.Config().IsVoter(m.From) {
		f.logEnds.note(logEnd{id: m.From, query: m.Query, last: m.Last.Index, unlogged: m.Unlogged,
			term: m.Term, config: m.Config})
	}
}

// readFromMajority answers the reads for which a majority told how far their logs go, if all of that has committed here.
func (f *forwards) readFromMajority() {
	if len(f.forwarded) == 0 || len(f.logEnds.answers) == 0 || (!f.knowsAll() && !f.opts.Faults.ReadLeaderIndex) {
		return
	}
	keep := f.forwarded[:0]
	for _, id := range f.forwarded {
		if index, told := f.indexFor(id); told && index <= f.log.Commit() {
			f.out.Reads = append(f.out.Reads, consensus.ReadIndex{ID: id, Index: index})
		} else {
			keep = append(keep, id)
		}
	}
	f.forwarded = keep
}

func (f *forwards) indexFor(read uint64) (consensus.Index, bool) {
	if f.opts.Faults.CountOldAnswers {
		read = 1
	}
	if f.opts.Faults.ReadLeaderIndex {
		if index, told := f.logEnds.leaderIndex(read, f.soft.leader, f.hard.term, f.configs.Config().Voters); told {
			return index, true
		}
	}
	return f.logEnds.index(read, f.configs.Config().Voters, f.configs.ID(), f.log.Last())
}

// leaderIndex is the fault ReadLeaderIndex: the end of the leader's log, if a majority is in no later term.
func (q *majorityRead) leaderIndex(read uint64, leader consensus.MemberID, term consensus.Term,
	voters []consensus.MemberID) (index consensus.Index, told bool) {
	others := 0
	for i := range q.answers {
		a := &q.answers[i]
		if a.query < read || a.term > term {
			continue
		}
		others++
		if a.id == leader && a.term == term {
			index, told = a.last, true
		}
	}
	return index, told && others >= quorum.Majority(len(voters))-1
}
