package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// handlePreVote answers whether this member would vote. Nothing here changes but what it knows of commits.
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

// noteNeeded takes note of a candidate that asks a member which is no voter by its own log, and has the better one. The log of
// the candidate makes it a voter, by an entry that has not committed; if that of no other voter is as good, nobody can be
// elected but this member.
func (r *Replica) noteNeeded(m *consensus.Message) {
	c := r.configs.Config()
	if m.Last.Before(r.log.LastPosition()) && c.IsVoter(m.From) && !c.IsVoter(r.opts.ID) && !r.hearsLeader() {
		r.elect.neededAt = r.clock.now
	}
}

// handleVote answers a vote of the current term (Raft paper, sections 5.2 and 5.4.1).
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
		reply.Records = r.fast.Acknowledged() // from here on this member accepts those of the new term only
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
		// The answer brought a change: it has to be applied first, or this member votes no more.
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
			// The rivals' round is over for everybody: an early second try ends a split vote soon. With a log for which
			// nobody votes it would only keep those from trying who could win.
			r.campaignWithin(r.opts.ElectionTicks)
		}
	}
}

// learnCommit takes what a candidate, or a voter, knows to be committed, in whatever term it learned that. It holds for this
// log if this log has that entry. It says nothing about the log of the leader that this member follows, whose term may be
// over: nothing else may be taken for equal to that leader's log because it is committed here (see matched).
func (r *Replica) learnCommit(m *consensus.Message) {
	if m.Committed.Index > r.log.Commit() && r.log.Matches(m.Committed) && r.knows(m.From) {
		r.commitTo(m.Committed.Index)
	}
}
