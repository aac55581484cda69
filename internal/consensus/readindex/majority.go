package readindex

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// Majority is the last question of this member, and what the voters answered.
type Majority struct {
	asked   uint64 // the name of the last question
	answers []Answer
	scratch []consensus.Index
}

// Answer is the latest answer of one voter. Questions grow, so that it answers all before it as well.
type Answer struct {
	Voter    consensus.MemberID
	Query    uint64
	Last     consensus.Index // of its log
	Unlogged bool            // writes may have been answered that are not in its log
	Term     consensus.Term
	Config   consensus.ConfigID
}

// Note takes an answer. One to a question that was not asked in this life of the reader counts for nothing.
func (q *Majority) Note(answer Answer) {
	if answer.Query > q.asked || answer.Query == 0 {
		return
	}
	for i := range q.answers {
		if old := &q.answers[i]; old.Voter == answer.Voter {
			if old.Query <= answer.Query {
				*old = answer
			}
			return
		}
	}
	q.answers = append(q.answers, answer)
}

// Ask begins a question to voters. Questions have names that grow.
func (q *Majority) Ask(query uint64, voters []consensus.MemberID) {
	q.asked = max(q.asked, query)
	q.retain(voters)
}

// Answered reports whether there are answers.
func (q *Majority) Answered() bool { return len(q.answers) > 0 }

// retain forgets the answers of those who vote no more, so that there are never more answers than voters.
func (q *Majority) retain(voters []consensus.MemberID) {
	q.answers = slices.DeleteFunc(q.answers, func(a Answer) bool { return !slices.Contains(voters, a.Voter) })
}

// Index returns up to where a majority of voters, the reader with a log up to own among them, may have logged what was
// answered before a read was asked for; false while too few have answered.
func (q *Majority) Index(read uint64, voters []consensus.MemberID, config consensus.ConfigID,
	own consensus.Index) (consensus.Index, bool) {
	lasts := q.scratch[:0]
	for i := range q.answers {
		a := &q.answers[i]
		if a.Query >= read && !a.Unlogged && a.Config == config && slices.Contains(voters, a.Voter) {
			lasts = append(lasts, a.Last)
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

// LeaderIndex is the fault ReadLeaderIndex: the end of the leader's log, if a majority is in no later term.
func (q *Majority) LeaderIndex(read uint64, leader consensus.MemberID, term consensus.Term,
	voters []consensus.MemberID) (index consensus.Index, known bool) {
	others := 0
	for i := range q.answers {
		a := &q.answers[i]
		if a.Query < read || a.Term > term {
			continue
		}
		others++
		if a.Voter == leader && a.Term == term {
			index, known = a.Last, true
		}
	}
	return index, known && others >= quorum.Majority(len(voters))-1
}
