package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// transfers is the transfer of leadership that a leader has begun.
type transfers struct {
	opts    *Options
	clock   *clock
	log     *raftlog.Log
	configs *configs.History
	soft    *softState
	out     *outbox
	peers   *peerSet
	rounds  *rounds
	cordon  *cordon

	target   consensus.MemberID    // or NoMember
	deadline uint64                // tick at which it is given up
	sent     bool                  // the target was told to campaign
	pace     progress.HandoverPace // of the transfers that a cordoned leader begins by itself
}

// begin begins to hand leadership to a voter, the best suited if to names none (Raft thesis, section 3.10).
// Proposals are refused until it ends: the target must be able to catch up. It never goes to a cordoned voter.
func (t *transfers) begin(to consensus.MemberID) {
	if to == consensus.NoMember {
		if p := t.peers.bestVoter(); p != nil {
			to = p.ID
		}
	}
	if to == t.opts.ID || to == t.target || t.peers.find(to) == nil || !t.configs.Config().IsVoter(to) || t.cordon.covers(to) {
		return
	}
	if t.target != consensus.NoMember {
		t.abort()
	}
	t.target, t.deadline = to, t.clock.now+uint64(t.opts.ElectionTicks)
	t.out.event(TransferStarted{To: to})
}

// advance tells the target to campaign as soon as it holds the whole log.
func (t *transfers) advance() {
	if t.target == consensus.NoMember {
		return
	}
	p := t.peers.find(t.target)
	if p == nil || !t.configs.Config().IsVoter(t.target) || t.cordon.covers(t.target) {
		t.abort()
		return
	}
	if p.Match == t.log.Last() && !t.sent {
		t.sent = true
		t.sendTimeoutNow(p.ID, false)
	}
}

func (t *transfers) sendTimeoutNow(to consensus.MemberID, force bool) {
	t.rounds.barred = true // from here on somebody may be elected without waiting for the lease, at any time in this term
	t.out.sendInTerm(consensus.Message{Kind: consensus.MsgTimeoutNow, To: to, Force: force})
}

func (t *transfers) abort() {
	t.out.event(TransferAborted{To: t.target})
	t.target, t.sent = consensus.NoMember, false
}

// handOverLeadership ends the term of a leader that must not lead on: a committed change removed or demoted it, or its
// disk hangs. In the first case the entries and the commit notice left just before on the same streams, so that the
// successor can be elected at once.
func (r *Replica) handOverLeadership() {
	if p := r.peers.bestVoter(); p != nil {
		r.out.event(TransferStarted{To: p.ID})
		r.transfer.sendTimeoutNow(p.ID, r.cordon.covers(p.ID))
	}
	r.becomeFollower(r.hard.term, consensus.NoMember)
}

// handleTimeoutNow campaigns at once, or, if a change has to be applied first, as soon as it is: the leader that this
// change removed has gone. A cordoned member does so only if force says that nobody else can.
func (r *Replica) handleTimeoutNow(force bool) {
	switch {
	case r.configs.AwaitsApply():
		r.elect.calledIn, r.elect.callForced = r.hard.term, force // who is cordoned then, the change decides
	case r.cordon.self() && !force:
	case r.mayCampaign():
		r.becomeCandidate(true)
	}
}

// answerCall campaigns if that was asked for in this term, and had to wait.
func (r *Replica) answerCall() {
	if r.elect.calledIn != r.hard.term || r.soft.role != Follower || r.configs.AwaitsApply() {
		return
	}
	r.elect.calledIn = 0
	if r.mayCampaign() && (r.elect.callForced || !r.cordon.self()) {
		r.becomeCandidate(true)
	}
}
