package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// campaign starts an election, or the inquiry before one.
func (r *Replica) campaign() {
	if r.lead != nil || r.elect.removed || r.promised() {
		return
	}
	if !r.mayCampaign() && !r.mayStandIn() {
		r.inquire()
		return
	}
	if !r.opts.PreVote {
		r.becomeCandidate(false)
		return
	}
	r.role = PreCandidate
	r.setLeader(consensus.NoMember)
	r.out.event(BecamePreCandidate{Term: r.hard.term})
	r.resetCampaign()
	r.startTally()
	if r.configs.Outcome(&r.elect.votes) == quorum.Won {
		r.becomeCandidate(false)
		return
	}
	r.askForVotes(consensus.MsgPreVote, r.hard.term+1, false)
}

// inquire asks the voters as if for a pre-vote and counts nothing: a member that may not campaign, and hears nobody,
// so learns the term, or that it was removed.
func (r *Replica) inquire() {
	if r.role != Follower { // it was a candidate while it had the right to
		r.endCandidacy()
	}
	r.setLeader(consensus.NoMember)
	r.resetCampaign()
	r.elect.votes.Reset()
	r.askForVotes(consensus.MsgPreVote, r.hard.term+1, false)
}

// mayCampaign reports whether this member counts as a candidate.
func (r *Replica) mayCampaign() bool {
	return !r.elect.removed && r.installing == nil && r.configs.MayStand()
}

// mayStandIn reports whether this member may be a candidate although it is no voter: a candidate whose log makes it one cannot
// win without it, and its own log is the better one. Whom it needs its own log says, and it does not count itself there.
func (r *Replica) mayStandIn() bool {
	return !r.elect.removed && r.installing == nil && r.needed() && r.configs.MayStandIn()
}

// endCandidacy makes a candidate a follower of nobody, in the same term.
func (r *Replica) endCandidacy() {
	r.role = Follower
	r.out.event(BecameFollower{Term: r.hard.term})
}

func (r *Replica) becomeCandidate(force bool) {
	if force {
		r.releasePromise() // the leader asked for it
	}
	if r.hard.term >= filter.MaxNumber {
		return // there is no higher one
	}
	r.setTerm(r.hard.term + 1)
	r.hard.voteFor(r.opts.ID)
	r.role = Candidate
	r.setLeader(consensus.NoMember)
	r.out.event(BecameCandidate{Term: r.hard.term})
	r.resetCampaign()
	r.startTally()
	r.fast.StartElection()
	if r.configs.Outcome(&r.elect.votes) == quorum.Won {
		r.becomeLeader()
		return
	}
	r.askForVotes(consensus.MsgVote, r.hard.term, force)
}

// becomeFollower enters term, if it is a higher one, under leader, if it is known.
func (r *Replica) becomeFollower(term consensus.Term, leader consensus.MemberID) {
	was := r.role
	if r.lead != nil {
		r.leaveLeadership()
	}
	r.role = Follower
	r.fast.EndElection()
	if term > r.hard.term {
		r.setTerm(term)
		r.leader = consensus.NoMember
		r.failForwarded()
		if leader == consensus.NoMember {
			r.out.event(LeaderChanged{Term: term})
		}
	}
	if was != Follower {
		r.out.event(BecameFollower{Term: r.hard.term})
	}
	r.setLeader(leader)
	r.elect.heardAt = r.clock.now // the wait for a leader counts from now on
	if was == Follower && leader == consensus.NoMember && r.selfCordoned() {
		return // the candidates of higher terms that come by, which nobody may be able to elect, do not prolong its longer wait
	}
	r.resetCampaign()
}

// becomeLeader begins to lead: a no-op of the new term, so that what earlier leaders left can commit (Raft paper,
// section 8), and a probe to everybody.
func (r *Replica) becomeLeader() {
	l := &leader{
		Replica: r, heartbeatAt: r.clock.now + uint64(r.opts.HeartbeatTicks), repeats: newRepeats(r.clock.now, r.log.Last()),
	}
	r.role, r.lead = Leader, l
	r.setLeader(r.opts.ID)
	l.syncPeers()
	l.addRemoved()
	for _, p := range l.peers {
		p.Heard = r.elect.votes.Granted(p.ID)
	}
	r.log.RestartApplyWatch(r.clock.now) // a store that hangs has as much time under each leader
	for _, e := range r.fast.Recover() {
		l.appendEntry(e)
	}
	l.noop = r.log.Last() + 1
	l.appendEntry(consensus.Entry{Kind: consensus.EntryNoop})
	r.out.event(BecameLeader{Term: r.hard.term, Noop: l.noop})
}

// leaveLeadership refuses what waited for it, and drops what only a leader knows.
func (r *Replica) leaveLeadership() {
	r.elect.ledAt = r.clock.now
	r.lead.failReads()
	r.lead = nil
}

// setTerm enters a new term, in which this member has not voted and knows nothing of the leader's log.
func (r *Replica) setTerm(term consensus.Term) {
	r.hard.enter(term)
	r.follow = following{}
	r.fast.EndElection()
	r.fast.ResetTally()
	r.elect.votes.Reset()
}

func (r *Replica) setLeader(leader consensus.MemberID) {
	if r.leader == leader {
		return
	}
	r.leader, r.boundTo = leader, consensus.ConfigID{}
	r.failForwarded()
	r.out.event(LeaderChanged{Leader: leader, Term: r.hard.term})
}

// handleTimeoutNow campaigns at once, or, if a change has to be applied first, as soon as it is: the leader that this
// change removed has gone. A cordoned member does so only if force says that nobody else can.
func (r *Replica) handleTimeoutNow(force bool) {
	switch {
	case r.configs.AwaitsApply():
		r.elect.askedIn, r.elect.askForced = r.hard.term, force // who is cordoned then, the change decides
	case r.selfCordoned() && !force:
	case r.mayCampaign():
		r.becomeCandidate(true)
	}
}

// campaignIfAsked campaigns if that was asked for in this term, and had to wait.
func (r *Replica) campaignIfAsked() {
	if r.elect.askedIn != r.hard.term || r.role != Follower || r.configs.AwaitsApply() {
		return
	}
	r.elect.askedIn = 0
	if r.mayCampaign() && (r.elect.askForced || !r.selfCordoned()) {
		r.becomeCandidate(true)
	}
}
