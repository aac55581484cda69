package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// becomeLeader begins to lead: a no-op of the new term, so that what earlier leaders left can commit (Raft paper,
// section 8), and a probe to everybody.
func (r *Replica) becomeLeader() {
	r.soft.role = Leader
	r.setLeader(r.opts.ID)
	r.peers.reset()
	r.rounds.reset()
	r.transfer.reset()
	r.repeats.reset()
	r.repl.heartbeatAt = r.clock.now + uint64(r.opts.HeartbeatTicks)
	r.peers.sync()
	r.peers.addRemoved()
	for _, p := range r.peers.list {
		p.Heard = r.elect.votes.Granted(p.ID)
	}
	r.log.RestartApplyWatch(r.clock.now) // a store that hangs has as much time under each leader
	for _, e := range r.fast.Recover() {
		r.repl.appendEntry(e)
	}
	r.soft.noop = r.log.Last() + 1
	r.repl.appendEntry(consensus.Entry{Kind: consensus.EntryNoop})
	r.out.event(BecameLeader{Term: r.hard.term, Noop: r.soft.noop})
}

// leaveLeadership refuses what waited for it.
func (r *Replica) leaveLeadership() {
	r.elect.led()
	r.reads.fail()
	r.peers.reset()
	r.transfer.reset()
	r.repeats.reset()
}

// campaign starts an election, or the inquiry before one.
func (r *Replica) campaign() {
	if r.soft.role == Leader || r.elect.removed || r.elect.promised() {
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
	if r.soft.role != Follower { // it was a candidate while it had the right to
		r.soft.role = Follower
		r.out.event(BecameFollower{Term: r.hard.term})
	}
	r.setLeader(consensus.NoMember)
	r.elect.resetCampaign()
	r.elect.votes.Reset()
	r.elect.askForVotes(consensus.MsgPreVote, r.hard.term+1, false)
}

// mayCampaign reports whether this member counts as a candidate.
func (r *Replica) mayCampaign() bool {
	return !r.elect.removed && r.follower.installing == nil && r.configs.MayStand()
}

// mayStandIn reports whether this member may be a candidate although it is no voter: a candidate whose log makes it one cannot
// win without it, and its own log is the better one. Whom it needs its own log says, and it does not count itself there.
func (r *Replica) mayStandIn() bool {
	return !r.elect.removed && r.follower.installing == nil && r.elect.needed() && r.configs.MayStandIn()
}

func (r *Replica) becomeCandidate(force bool) {
	if force {
		r.elect.releasePromise() // the leader asked for it
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
	r.elect.beginTerm()
	if was == Follower && leader == consensus.NoMember && r.cordon.Self() {
		return // the candidates of higher terms that come by, which nobody may be able to elect, do not prolong its longer wait
	}
	r.elect.resetCampaign()
}

// setTerm enters a new term, in which this member has not voted and knows nothing of the leader's log.
func (r *Replica) setTerm(term consensus.Term) {
	r.hard.term, r.hard.vote = term, consensus.NoMember
	r.soft.matched, r.follower.roundHeard, r.follower.roundInOrder = 0, 0, 0
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

// handOverLeadership ends the term of a leader that must not lead on: a committed change removed or demoted it, or its
// disk hangs. In the first case the entries and the commit notice left just before on the same streams, so that the
// successor can be elected at once.
func (r *Replica) handOverLeadership() {
	if p := r.peers.bestVoter(); p != nil {
		r.out.event(TransferStarted{To: p.ID})
		r.transfer.sendTimeoutNow(p.ID, r.cordon.Covers(p.ID))
	}
	r.becomeFollower(r.hard.term, consensus.NoMember)
}

// handleTimeoutNow campaigns at once, or, if a change has to be applied first, as soon as it is: the leader that this
// change removed has gone. A cordoned member does so only if force says that nobody else can.
func (r *Replica) handleTimeoutNow(force bool) {
	switch {
	case r.configs.AwaitsApply():
		r.elect.askedIn, r.elect.askForced = r.hard.term, force // who is cordoned then, the change decides
	case r.cordon.Self() && !force:
	case r.mayCampaign():
		r.becomeCandidate(true)
	}
}

// campaignIfAsked campaigns if that was asked for in this term, and had to wait.
func (r *Replica) campaignIfAsked() {
	if r.elect.askedIn != r.hard.term || r.soft.role != Follower || r.configs.AwaitsApply() {
		return
	}
	r.elect.askedIn = 0
	if r.mayCampaign() && (r.elect.askForced || !r.cordon.Self()) {
		r.becomeCandidate(true)
	}
}
