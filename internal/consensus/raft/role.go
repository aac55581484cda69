package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// campaign starts an election, or the pre-vote before one.
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

// inquire asks the voters as if for a pre-vote and counts no answers: a member that may not campaign, and has no leader, so
// learns the term, or that it was removed.
func (r *Replica) inquire() {
	if r.role != Follower { // it was a candidate while its configuration let it be one
		r.endCandidacy()
	}
	r.setLeader(consensus.NoMember)
	r.resetCampaign()
	r.elect.votes.Reset()
	r.askForVotes(consensus.MsgPreVote, r.hard.term+1, false)
}

// mayCampaign reports whether this member may be elected.
func (r *Replica) mayCampaign() bool {
	return !r.elect.removed && r.installing == nil && r.configs.MayStand()
}

// mayStandIn reports whether this member may be a candidate although it is no voter. A candidate whose log makes this member a
// voter cannot win without its vote, and this member's log is the better one. This member counts the voters of its own log, and
// not itself.
func (r *Replica) mayStandIn() bool {
	return !r.elect.removed && r.installing == nil && r.needed() && r.configs.MayStandIn()
}

// endCandidacy makes a candidate a follower without a leader, in the same term.
func (r *Replica) endCandidacy() {
	r.role = Follower
	r.out.event(BecameFollower{Term: r.hard.term})
}

func (r *Replica) becomeCandidate(force bool) {
	if force {
		r.releasePromise() // the leader demanded the election
	}
	if r.hard.term >= filter.MaxNumber {
		return // there is no higher term
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

// becomeFollower enters term, if it is higher, under leader, unless that is NoMember.
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
	r.elect.heardAt = r.clock.now // the wait for a leader starts now
	if was == Follower && leader == consensus.NoMember && r.selfCordoned() {
		return // candidates of higher terms, which may be unable to win, do not prolong the wait
	}
	r.resetCampaign()
}

// becomeLeader begins to lead: it logs a no-op of the new term, so that entries of earlier leaders can commit (Raft paper,
// section 8), and probes every peer.
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
	r.log.RestartApplyWatch(r.clock.now) // a store that hangs gets as much time under each leader
	for _, e := range r.fast.Recover() {
		l.appendEntry(e)
	}
	l.noop = r.log.Last() + 1
	l.appendEntry(consensus.Entry{Kind: consensus.EntryNoop})
	r.out.event(BecameLeader{Term: r.hard.term, Noop: l.noop})
}

// leaveLeadership refuses the requests that wait for the leader, and drops the leader's state.
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

// handleTimeoutNow campaigns at once, or, if a change has to be applied first, after that: the leader that this change removed
// has gone. A cordoned member does so only if force says that no other voter can.
func (r *Replica) handleTimeoutNow(force bool) {
	switch {
	case r.configs.AwaitsApply():
		r.elect.askedIn, r.elect.askForced = r.hard.term, force // the change decides which members are cordoned then
	case r.selfCordoned() && !force:
	case r.mayCampaign():
		r.becomeCandidate(true)
	}
}

// campaignIfAsked campaigns if a leader of this term asked for it and the campaign had to wait.
func (r *Replica) campaignIfAsked() {
	if r.elect.askedIn != r.hard.term || r.role != Follower || r.configs.AwaitsApply() {
		return
	}
	r.elect.askedIn = 0
	if r.mayCampaign() && (r.elect.askForced || !r.selfCordoned()) {
		r.becomeCandidate(true)
	}
}
