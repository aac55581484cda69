package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// handlePreVote answers whether this member would vote. It changes no state but the commit index.
func (r *Replica) handlePreVote(m *consensus.Message) {
	r.learnCommit(m)
	grant := m.Term > r.hard.term && !r.hearsLeader() && !m.Last.Before(r.log.LastPosition())
	reply := consensus.Message{
		Kind: consensus.MsgPreVoteReply, To: m.From, Term: r.hard.term, Last: r.log.LastPosition(), Reject: !grant,
	}
	if grant {
		reply.Term = m.Term
	} else {
		r.noteNeeded(m)
	}
	r.attachCommit(&reply)
	r.sendInTerm(reply)
}

// noteNeeded notes a candidate that asks for this member's vote although this member is no voter by its own log, and that has
// the less up-to-date log. The log of the candidate makes this member a voter, by an entry that has not committed; if no other
// voter's log is as up-to-date as this member's, only this member can be elected.
func (r *Replica) noteNeeded(m *consensus.Message) {
	c := r.configs.Config()
	if m.Last.Before(r.log.LastPosition()) && c.IsVoter(m.From) && !c.IsVoter(r.opts.ID) && !r.hearsLeader() {
		r.elect.neededAt = r.clock.now
	}
}

// handleVote answers a vote request of the current term (Raft paper, sections 5.2 and 5.4.1).
func (r *Replica) handleVote(m *consensus.Message) {
	r.learnCommit(m)
	free := (r.hard.vote == consensus.NoMember && r.leader == consensus.NoMember) || r.hard.vote == m.From
	if r.opts.Dropped[rules.VoteTwice] {
		free = true
	}
	grant := free && r.lead == nil && !m.Last.Before(r.log.LastPosition())
	if grant {
		r.hard.voteFor(m.From)
		r.elect.spread = 0 // the next waits are as long as usual
		r.resetCampaign()
	}
	reply := consensus.Message{
		Kind: consensus.MsgVoteReply, To: m.From, Term: r.hard.term, Last: r.log.LastPosition(), Reject: !grant,
	}
	if grant {
		reply.Records = r.fast.Acknowledged() // from here on this member accepts records of the new term only
	} else {
		r.noteNeeded(m)
	}
	r.attachCommit(&reply)
	r.send(reply, true)
}

func (r *Replica) handleVoteReply(m *consensus.Message) {
	r.learnCommit(m)
	pre := m.Kind == consensus.MsgPreVoteReply
	switch {
	case pre && (r.role != PreCandidate || (!m.Reject && m.Term != r.hard.term+1)):
		return
	case !pre && (r.role != Candidate || m.Term != r.hard.term):
		return
	case r.elect.votes.Answered(m.From):
		return
	case !r.mayCampaign() && !r.mayStandIn():
		// The answer committed a change: either it has to be applied first, or this member has no vote any more.
		r.endCandidacy()
		r.campaignWithin(r.opts.HeartbeatTicks)
		return
	}
	if m.Reject {
		r.elect.votes.Refuse(m.From)
		r.elect.logBehind = r.elect.logBehind || r.log.LastPosition().Before(m.Last)
	} else {
		r.elect.votes.Grant(m.From)
		if !pre {
			r.fast.AddBallot(m.From, m.Records)
		}
	}
	switch r.configs.Outcome(&r.elect.votes) {
	case quorum.Pending:
	case quorum.Won:
		if pre {
			r.becomeCandidate(false)
		} else {
			r.becomeLeader()
		}
	case quorum.Lost:
		r.endCandidacy()
		if !pre && !r.elect.logBehind {
			// The election of this term is over for every candidate: an early second try ends a split vote soon. A member whose
			// log is too old to win would only keep others from trying that can.
			r.campaignWithin(r.opts.ElectionTicks)
		}
	}
}

// learnCommit takes the commit index of a candidate, or of a voter, in whatever term it learned that. The index holds for this
// log if this log has that entry. It says nothing about the log of the leader that this member follows, whose term may be over:
// a committed entry here need not equal that leader's entry (see matched).
func (r *Replica) learnCommit(m *consensus.Message) {
	if m.Committed.Index > r.log.Commit() && r.log.Matches(m.Committed) && r.knows(m.From) {
		r.commitTo(m.Committed.Index)
	}
}
