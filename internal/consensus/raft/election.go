package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// election is when a member campaigns, what it owes to leaders that it heard, and the votes that it was given. It belongs
// to every role: a leader, too, draws when it would campaign.
type election struct {
	opts    *Options
	clock   *clock
	hard    *hardState
	soft    *softState
	out     *outbox
	log     *raftlog.Log
	configs *configs.History
	cordon  *cordon
	rng     random

	heardAt    uint64 // when the leader was heard last, or this term's role began
	campaignAt uint64 // when to campaign unless a leader is heard
	spread     int    // of the next wait, in ticks, while waits are short; else zero
	suspect    bool   // the connection to the leader broke: refuse nobody for its sake
	// patientUntil is when the last leader that was heard, in any term, can no longer have a lease for that reason.
	patientUntil uint64

	votes   configs.Votes
	outdone bool // a voter that refused has a better log
	removed bool // for ever: never campaign again
	// A leader asked this member to campaign in the term calledIn, and a change has to be applied first.
	calledIn   consensus.Term
	callForced bool // no other voter can lead
}

// resetCampaign draws when to campaign next. The spread keeps candidates apart (Raft paper, section 5.2). After a start,
// or once the connection to the leader broke, the waits are short, each twice as long as the one before, until the
// usual one is reached. A cordoned member waits longer, and never shortly: the others go first.
func (e *election) resetCampaign() {
	if e.cordon.self() {
		e.spread = 0
		least := cordonWait * e.opts.ElectionTicks
		e.campaignAt = e.clock.now + uint64(e.rng.between(least, least+e.opts.ElectionTicks-1))
		return
	}
	if e.spread > 0 && e.spread < e.opts.ElectionTicks && !e.opts.LeaderLease {
		e.campaignAt = e.clock.now + uint64(e.rng.between(1, e.spread))
		e.spread *= 2
		return
	}
	e.spread = 0
	e.campaignAt = e.clock.now + uint64(e.rng.between(e.opts.ElectionTicks, 2*e.opts.ElectionTicks-1))
}

// hearLeader notes a sign of life of the current leader.
func (e *election) hearLeader() {
	e.heardAt, e.spread, e.suspect = e.clock.now, 0, false
	if e.opts.LeaderLease {
		e.patientUntil = max(e.patientUntil, e.clock.now+uint64(e.opts.ElectionTicks))
	}
	e.resetCampaign()
}

// suspectLeader acts on the evidence that the leader died: stop refusing others, and ask soon oneself. Under a leader
// lease the promise to wait stands: reads of the leader rest on it.
func (e *election) suspectLeader(member consensus.MemberID) {
	if e.soft.role != Follower || e.soft.leader != member || e.suspect || e.opts.LeaderLease {
		return
	}
	e.suspect, e.spread = true, max(3, e.opts.HeartbeatTicks/2)
	e.out.event(LeaderSuspected{Leader: member})
	e.resetCampaign()
}

// hearsLeader reports whether this member must not help to depose a leader that seems alive (Raft thesis, section
// 4.2.3): so a removed or cut-off member cannot disrupt.
func (e *election) hearsLeader() bool {
	if e.promised() {
		return true
	}
	if !e.opts.CheckQuorum {
		return false
	}
	if e.soft.role == Leader {
		return true
	}
	return e.soft.leader != consensus.NoMember && !e.suspect && e.clock.now-e.heardAt < uint64(e.opts.ElectionTicks)
}

// mayCampaign reports whether this member counts as a candidate.
func (r *Replica) mayCampaign() bool {
	return !r.elect.removed && r.follower.installing == nil && r.configs.MayStand()
}

// campaign starts an election, or the inquiry before one.
func (r *Replica) campaign() {
	if r.soft.role == Leader || r.elect.removed || r.elect.promised() {
		return
	}
	if !r.mayCampaign() {
		r.inquire()
		return
	}
	if !r.opts.PreVote {
		r.becomeCandidate(false)
		return
	}
	r.soft.role = PreCandidate
	r.setLeader(consensus.NoMember)
	r.out.event(BecamePreCandidate{Term: r.hard.term})
	r.elect.resetCampaign()
	r.elect.startTally()
	if r.configs.Outcome(&r.elect.votes) == quorum.Won {
		r.becomeCandidate(false)
		return
	}
	r.elect.askForVotes(consensus.MsgPreVote, r.hard.term+1, false)
}

// inquire asks the voters as if for a pre-vote and counts nothing: a member that may not campaign, and hears nobody,
// so learns the term, or that it was removed.
func (r *Replica) inquire() {
	r.setLeader(consensus.NoMember)
	r.elect.resetCampaign()
	r.elect.votes.Reset()
	r.elect.askForVotes(consensus.MsgPreVote, r.hard.term+1, false)
}

func (r *Replica) becomeCandidate(force bool) {
	if force {
		r.elect.patientUntil = 0 // the leader asked for it
	}
	if r.hard.term >= filter.MaxNumber {
		return // there is no higher one
	}
	r.setTerm(r.hard.term + 1)
	r.hard.vote = r.opts.ID
	r.soft.role = Candidate
	r.setLeader(consensus.NoMember)
	r.out.event(BecameCandidate{Term: r.hard.term})
	r.elect.resetCampaign()
	r.elect.startTally()
	r.fast.StartElection()
	if r.configs.Outcome(&r.elect.votes) == quorum.Won {
		r.becomeLeader()
		return
	}
	r.elect.askForVotes(consensus.MsgVote, r.hard.term, force)
}

// askForVotes asks every voter. A vote leaves only once the term and the own vote are durable: a candidate that forgot
// them could ask again in the same term with a shorter log, and be elected by the answers to the first question.
func (e *election) askForVotes(kind consensus.MessageKind, term consensus.Term, force bool) {
	c := e.configs.Config()
	ask := func(id consensus.MemberID) {
		if id == e.opts.ID {
			return
		}
		m := consensus.Message{Kind: kind, To: id, Term: term, Last: e.log.LastMark(), Force: force}
		e.tellCommit(&m)
		e.out.send(m, kind == consensus.MsgVote)
	}
	for _, id := range c.Voters {
		ask(id)
	}
	for _, id := range c.Outgoing {
		if !slices.Contains(c.Voters, id) {
			ask(id)
		}
	}
}

// tellCommit puts into a vote, or its answer, how far this member knows the log to be committed, and the term there.
// A candidate that knows less so learns which configuration is in force before it counts (etcd issue 12359).
func (e *election) tellCommit(m *consensus.Message) {
	if term, ok := e.log.Term(e.log.Commit()); ok {
		m.Committed = consensus.Mark{Index: e.log.Commit(), Term: term}
	}
}

// learnCommit takes what a candidate, or a voter, knows to be committed, in whatever term it learned that. It holds for this
// log if this log has that entry. It says nothing about the log of the leader that this member follows, whose term may be
// over: nothing else may be taken for equal to that leader's log because it is committed here (see matched).
func (r *Replica) learnCommit(m *consensus.Message) {
	if m.Committed.Index > r.log.Commit() && r.log.Matches(m.Committed) && r.gate.knows(m.From) {
		r.journal.commitTo(m.Committed.Index)
	}
}

// startTally begins to count votes, with this member's own.
func (e *election) startTally() {
	e.votes.Reset()
	e.votes.Grant(e.opts.ID)
	e.outdone = false
}

// handlePreVote answers whether this member would vote. Nothing here changes but what it knows of commits.
func (r *Replica) handlePreVote(m *consensus.Message) {
	r.learnCommit(m)
	grant := m.Term > r.hard.term && !r.elect.hearsLeader() && !m.Last.Before(r.log.LastMark())
	reply := consensus.Message{
		Kind: consensus.MsgPreVoteReply, To: m.From, Term: r.hard.term, Last: r.log.LastMark(), Reject: !grant,
	}
	if grant {
		reply.Term = m.Term
	}
	r.elect.tellCommit(&reply)
	r.out.sendInTerm(reply)
}

// handleVote answers a vote of the current term (Raft paper, sections 5.2 and 5.4.1).
func (r *Replica) handleVote(m *consensus.Message) {
	r.learnCommit(m)
	free := (r.hard.vote == consensus.NoMember && r.soft.leader == consensus.NoMember) || r.hard.vote == m.From
	if r.opts.Faults.VoteTwice {
		free = true
	}
	grant := free && r.soft.role != Leader && !m.Last.Before(r.log.LastMark())
	if grant {
		r.hard.vote = m.From
		r.elect.spread = 0
		r.elect.resetCampaign()
	}
	reply := consensus.Message{
		Kind: consensus.MsgVoteReply, To: m.From, Term: r.hard.term, Last: r.log.LastMark(), Reject: !grant,
	}
	if grant {
		reply.Records = r.fast.Acknowledged() // from here on this member accepts those of the new term only
	}
	r.elect.tellCommit(&reply)
	r.out.send(reply, true)
}

func (r *Replica) handleVoteReply(m *consensus.Message) {
	r.learnCommit(m)
	pre := m.Kind == consensus.MsgPreVoteReply
	switch {
	case pre && (r.soft.role != PreCandidate || (!m.Reject && m.Term != r.hard.term+1)):
		return
	case !pre && (r.soft.role != Candidate || m.Term != r.hard.term):
		return
	case r.elect.votes.Answered(m.From):
		return
	case !r.mayCampaign():
		// The answer told of a change: it has to be applied first, or this member votes no more.
		r.soft.role = Follower
		r.out.event(BecameFollower{Term: r.hard.term})
		r.elect.campaignAt = r.clock.now + uint64(r.elect.rng.between(1, r.opts.HeartbeatTicks))
		return
	}
	if m.Reject {
		r.elect.votes.Refuse(m.From)
		r.elect.outdone = r.elect.outdone || r.log.LastMark().Before(m.Last)
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
		r.soft.role = Follower
		r.out.event(BecameFollower{Term: r.hard.term})
		if !pre && !r.elect.outdone {
			// The rivals' round is over for everybody: an early second try ends a split vote soon. With a log for which
			// nobody votes it would only keep those from trying who could win.
			r.elect.campaignAt = r.clock.now + uint64(r.elect.rng.between(1, r.opts.ElectionTicks))
		}
	}
}

// setTerm enters a new term, in which this member has not voted and knows nothing of the leader's log.
func (r *Replica) setTerm(term consensus.Term) {
	r.hard.term, r.hard.vote = term, consensus.NoMember
	r.soft.matched, r.follower.roundHeard = 0, 0
	r.follower.ackDue, r.follower.echoDue = false, false
	r.infer.reset()
	r.fast.EndElection()
	r.fast.ResetTally()
	r.elect.votes.Reset()
}

func (r *Replica) setLeader(leader consensus.MemberID) {
	if r.soft.leader == leader {
		return
	}
	r.soft.leader, r.soft.boundTo = leader, consensus.ConfigID{}
	r.forwards.fail()
	r.out.event(LeaderChanged{Leader: leader, Term: r.hard.term})
}

// becomeFollower enters term, if it is a higher one, under leader, if it is known.
func (r *Replica) becomeFollower(term consensus.Term, leader consensus.MemberID) {
	was := r.soft.role
	if was == Leader {
		r.leaveLeadership()
	}
	r.soft.role = Follower
	r.fast.EndElection()
	if term > r.hard.term {
		r.setTerm(term)
		r.soft.leader = consensus.NoMember
		r.forwards.fail()
		if leader == consensus.NoMember {
			r.out.event(LeaderChanged{Term: term})
		}
	}
	if was != Follower {
		r.out.event(BecameFollower{Term: r.hard.term})
	}
	r.setLeader(leader)
	r.elect.heardAt, r.elect.suspect = r.clock.now, false
	if was == Follower && leader == consensus.NoMember && r.cordon.self() {
		return // the candidates of higher terms that come by, which nobody may be able to elect, do not prolong its longer wait
	}
	r.elect.resetCampaign()
}
