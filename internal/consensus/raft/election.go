package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// resetCampaign draws when to campaign next. The spread keeps candidates apart (Raft paper, section 5.2). After a start,
// or once the connection to the leader broke, the waits are short, each twice as long as the one before, until the
// usual one is reached. A cordoned member waits longer, and never shortly: the others go first.
func (r *Replica) resetCampaign() {
	if r.cordoned() {
		r.spread = 0
		least := cordonWait * r.opts.ElectionTicks
		r.campaignAt = r.now + uint64(r.rng.between(least, least+r.opts.ElectionTicks-1))
		return
	}
	if r.spread > 0 && r.spread < r.opts.ElectionTicks && !r.opts.LeaderLease {
		r.campaignAt = r.now + uint64(r.rng.between(1, r.spread))
		r.spread *= 2
		return
	}
	r.spread = 0
	r.campaignAt = r.now + uint64(r.rng.between(r.opts.ElectionTicks, 2*r.opts.ElectionTicks-1))
}

// hearLeader notes a sign of life of the current leader.
func (r *Replica) hearLeader() {
	r.heardAt, r.spread, r.suspect = r.now, 0, false
	if r.opts.LeaderLease {
		r.patientUntil = max(r.patientUntil, r.now+uint64(r.opts.ElectionTicks))
	}
	r.resetCampaign()
}

// suspectLeader acts on the evidence that the leader died: stop refusing others, and ask soon oneself. Under a leader
// lease the promise to wait stands: reads of the leader rest on it.
func (r *Replica) suspectLeader(member consensus.MemberID) {
	if r.role != Follower || r.leader != member || r.suspect || r.opts.LeaderLease {
		return
	}
	r.suspect, r.spread = true, max(3, r.opts.HeartbeatTicks/2)
	r.event(LeaderSuspected{Leader: member})
	r.resetCampaign()
}

// hearsLeader reports whether this member must not help to depose a leader that seems alive (Raft thesis, section
// 4.2.3): so a removed or cut-off member cannot disrupt.
func (r *Replica) hearsLeader() bool {
	if r.promised() {
		return true
	}
	if !r.opts.CheckQuorum {
		return false
	}
	if r.role == Leader {
		return true
	}
	return r.leader != consensus.NoMember && !r.suspect && r.now-r.heardAt < uint64(r.opts.ElectionTicks)
}

// mayCampaign reports whether this member counts as a candidate.
func (r *Replica) mayCampaign() bool {
	return !r.removed && r.installing == nil && r.configs.MayStand()
}

// campaign starts an election, or the inquiry before one.
func (r *Replica) campaign() {
	if r.role == Leader || r.removed || r.promised() {
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
	r.role = PreCandidate
	r.setLeader(consensus.NoMember)
	r.event(BecamePreCandidate{Term: r.term})
	r.resetCampaign()
	r.startTally()
	if r.outcome() == quorum.Won {
		r.becomeCandidate(false)
		return
	}
	r.askForVotes(consensus.MsgPreVote, r.term+1, false)
}

// inquire asks the voters as if for a pre-vote and counts nothing: a member that may not campaign, and hears nobody,
// so learns the term, or that it was removed.
func (r *Replica) inquire() {
	r.setLeader(consensus.NoMember)
	r.resetCampaign()
	r.granted, r.refused = r.granted[:0], r.refused[:0]
	r.askForVotes(consensus.MsgPreVote, r.term+1, false)
}

func (r *Replica) becomeCandidate(force bool) {
	if force {
		r.patientUntil = 0 // the leader asked for it
	}
	if r.term >= maxNumber {
		return // there is no higher one
	}
	r.setTerm(r.term + 1)
	r.vote = r.opts.ID
	r.role = Candidate
	r.setLeader(consensus.NoMember)
	r.event(BecameCandidate{Term: r.term})
	r.resetCampaign()
	r.startTally()
	r.fast.ballots = []ballot{{r.opts.ID, r.acknowledgedRecords()}}
	if r.outcome() == quorum.Won {
		r.becomeLeader()
		return
	}
	r.askForVotes(consensus.MsgVote, r.term, force)
}

// askForVotes asks every voter. A vote leaves only once the term and the own vote are durable: a candidate that forgot
// them could ask again in the same term with a shorter log, and be elected by the answers to the first question.
func (r *Replica) askForVotes(kind consensus.MessageKind, term consensus.Term, force bool) {
	c := r.configs.Config()
	ask := func(id consensus.MemberID) {
		if id == r.opts.ID {
			return
		}
		m := consensus.Message{Kind: kind, To: id, Term: term, Last: r.log.LastMark(), Force: force}
		r.tellCommit(&m)
		r.send(m, kind == consensus.MsgVote)
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
func (r *Replica) tellCommit(m *consensus.Message) {
	if term, ok := r.log.Term(r.log.Commit()); ok {
		m.Committed = consensus.Mark{Index: r.log.Commit(), Term: term}
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

func (r *Replica) startTally() {
	r.granted, r.refused, r.outdone = append(r.granted[:0], r.opts.ID), r.refused[:0], false
}

// outcome counts the votes, set by set. A candidate outside a set is not counted there.
func (r *Replica) outcome() quorum.Outcome {
	c := r.configs.Config()
	if r.opts.Faults.UnionOfJoint {
		both := slices.Concat(c.Voters, c.Outgoing)
		slices.Sort(both)
		return r.tally(slices.Compact(both))
	}
	result := r.tally(c.Voters)
	if c.IsJoint() {
		result = quorum.Both(result, r.tally(c.Outgoing))
	}
	return result
}

func (r *Replica) tally(voters []consensus.MemberID) quorum.Outcome {
	granted, refused := 0, 0
	for _, id := range voters {
		switch {
		case slices.Contains(r.granted, id):
			granted++
		case slices.Contains(r.refused, id):
			refused++
		}
	}
	return quorum.Tally(len(voters), granted, refused)
}

// handlePreVote answers whether this member would vote. Nothing here changes but what it knows of commits.
func (r *Replica) handlePreVote(m *consensus.Message) {
	r.learnCommit(m)
	grant := m.Term > r.term && !r.hearsLeader() && !m.Last.Before(r.log.LastMark())
	reply := consensus.Message{
		Kind: consensus.MsgPreVoteReply, To: m.From, Term: r.term, Last: r.log.LastMark(), Reject: !grant,
	}
	if grant {
		reply.Term = m.Term
	}
	r.tellCommit(&reply)
	r.send(reply, r.termPending())
}

// handleVote answers a vote of the current term (Raft paper, sections 5.2 and 5.4.1).
func (r *Replica) handleVote(m *consensus.Message) {
	r.learnCommit(m)
	free := (r.vote == consensus.NoMember && r.leader == consensus.NoMember) || r.vote == m.From
	if r.opts.Faults.VoteTwice {
		free = true
	}
	grant := free && r.role != Leader && !m.Last.Before(r.log.LastMark())
	if grant {
		r.vote = m.From
		r.spread = 0
		r.resetCampaign()
	}
	reply := consensus.Message{
		Kind: consensus.MsgVoteReply, To: m.From, Term: r.term, Last: r.log.LastMark(), Reject: !grant,
	}
	if grant {
		reply.Records = r.acknowledgedRecords() // from here on this member accepts those of the new term only
	}
	r.tellCommit(&reply)
	r.send(reply, true)
}

func (r *Replica) handleVoteReply(m *consensus.Message) {
	r.learnCommit(m)
	pre := m.Kind == consensus.MsgPreVoteReply
	switch {
	case pre && (r.role != PreCandidate || (!m.Reject && m.Term != r.term+1)):
		return
	case !pre && (r.role != Candidate || m.Term != r.term):
		return
	case slices.Contains(r.granted, m.From) || slices.Contains(r.refused, m.From):
		return
	case !r.mayCampaign():
		// The answer told of a change: it has to be applied first, or this member votes no more.
		r.role = Follower
		r.event(BecameFollower{Term: r.term})
		r.campaignAt = r.now + uint64(r.rng.between(1, r.opts.HeartbeatTicks))
		return
	}
	if m.Reject {
		r.refused = append(r.refused, m.From)
		r.outdone = r.outdone || r.log.LastMark().Before(m.Last)
	} else {
		r.granted = append(r.granted, m.From)
		if !pre {
			r.fast.ballots = append(r.fast.ballots, ballot{m.From, m.Records})
		}
	}
	switch r.outcome() {
	case quorum.Pending:
	case quorum.Won:
		if pre {
			r.becomeCandidate(false)
		} else {
			r.becomeLeader()
		}
	case quorum.Lost:
		r.role = Follower
		r.event(BecameFollower{Term: r.term})
		if !pre && !r.outdone {
			// The rivals' round is over for everybody: an early second try ends a split vote soon. With a log for which
			// nobody votes it would only keep those from trying who could win.
			r.campaignAt = r.now + uint64(r.rng.between(1, r.opts.ElectionTicks))
		}
	}
}

// setTerm enters a new term, in which this member has not voted and knows nothing of the leader's log.
func (r *Replica) setTerm(term consensus.Term) {
	r.term, r.vote = term, consensus.NoMember
	r.matched, r.roundHeard = 0, 0
	r.ackDue, r.echoDue = false, false
	r.forgetHoldings()
	r.fast.ballots = nil
	r.resetTally()
	r.granted, r.refused = r.granted[:0], r.refused[:0]
}

func (r *Replica) setLeader(leader consensus.MemberID) {
	if r.leader == leader {
		return
	}
	r.leader, r.boundTo = leader, consensus.ConfigID{}
	r.failForwarded()
	r.event(LeaderChanged{Leader: leader, Term: r.term})
}

// becomeFollower enters term, if it is a higher one, under leader, if it is known.
func (r *Replica) becomeFollower(term consensus.Term, leader consensus.MemberID) {
	was := r.role
	if was == Leader {
		r.leaveLeadership()
	}
	r.role, r.fast.ballots = Follower, nil
	if term > r.term {
		r.setTerm(term)
		r.leader = consensus.NoMember
		r.failForwarded()
		if leader == consensus.NoMember {
			r.event(LeaderChanged{Term: term})
		}
	}
	if was != Follower {
		r.event(BecameFollower{Term: r.term})
	}
	r.setLeader(leader)
	r.heardAt, r.suspect = r.now, false
	if was == Follower && leader == consensus.NoMember && r.cordoned() {
		return // the candidates of higher terms that come by, which nobody may be able to elect, do not prolong its longer wait
	}
	r.resetCampaign()
}
