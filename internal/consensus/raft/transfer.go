package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
)

// transfer begins to hand leadership to a voter, the best suited if to names none (Raft thesis, section 3.10).
// Proposals are refused until it ends: the target must be able to catch up. It never goes to a cordoned voter.
func (r *Replica) transfer(to consensus.MemberID) {
	if r.role != Leader {
		if r.leader != consensus.NoMember {
			r.toLeader.transfer, r.toLeader.asks = to, true
		}
		return
	}
	if to == consensus.NoMember {
		if p := r.bestVoter(); p != nil {
			to = p.ID
		}
	}
	if to == r.opts.ID || to == r.transferee || r.peer(to) == nil || !r.configs.Config().IsVoter(to) || r.leavesLeadership(to) {
		return
	}
	if r.transferee != consensus.NoMember {
		r.abortTransfer()
	}
	r.transferee, r.transferBy = to, r.now+uint64(r.opts.ElectionTicks)
	r.event(TransferStarted{To: to})
}

// advanceTransfer tells the target to campaign as soon as it holds the whole log.
func (r *Replica) advanceTransfer() {
	if r.transferee == consensus.NoMember {
		return
	}
	p := r.peer(r.transferee)
	if p == nil || !r.configs.Config().IsVoter(r.transferee) || r.leavesLeadership(r.transferee) {
		r.abortTransfer()
		return
	}
	if p.Match == r.log.Last() && !r.transferSent {
		r.transferSent = true
		r.sendTimeoutNow(p.ID, false)
	}
}

func (r *Replica) sendTimeoutNow(to consensus.MemberID, force bool) {
	r.leaseBarred = true // from here on somebody may be elected without waiting for the lease, at any time in this term
	r.sendAsLeader(consensus.Message{Kind: consensus.MsgTimeoutNow, To: to, Force: force})
}

func (r *Replica) abortTransfer() {
	r.event(TransferAborted{To: r.transferee})
	r.transferee, r.transferSent = consensus.NoMember, false
}

// bestVoter returns the voter, other than this one, that holds most of the log and was heard lately. A cordoned one is taken
// only if no other could lead at once.
func (r *Replica) bestVoter() *progress.Peer {
	peers := r.peers
	if r.anyCordoned() {
		if able := r.ableToLead(); len(able) > 0 {
			peers = able
		}
	}
	var best *progress.Peer
	for _, p := range peers {
		if !slices.Contains(r.configs.Config().Voters, p.ID) || !r.active(p) {
			continue
		}
		if best == nil || p.Match > best.Match {
			best = p
		}
	}
	return best
}

// handOverLeadership ends the term of a leader that must not lead on: a committed change removed or demoted it, or its
// disk hangs. In the first case the entries and the commit notice left just before on the same streams, so that the
// successor can be elected at once.
func (r *Replica) handOverLeadership() {
	if p := r.bestVoter(); p != nil {
		r.event(TransferStarted{To: p.ID})
		r.sendTimeoutNow(p.ID, r.leavesLeadership(p.ID))
	}
	r.becomeFollower(r.term, consensus.NoMember)
}

// handleTimeoutNow campaigns at once, or, if a change has to be applied first, as soon as it is: the leader that this
// change removed has gone. A cordoned member does so only if force says that nobody else can.
func (r *Replica) handleTimeoutNow(force bool) {
	switch {
	case r.configs.AwaitsApply():
		r.calledIn, r.cordon.forced = r.term, force // who is cordoned then, the change decides
	case r.cordoned() && !force:
	case r.mayCampaign():
		r.becomeCandidate(true)
	}
}

// answerCall campaigns if that was asked for in this term, and had to wait.
func (r *Replica) answerCall() {
	if r.calledIn != r.term || r.role != Follower || r.configs.AwaitsApply() {
		return
	}
	r.calledIn = 0
	if r.mayCampaign() && (r.cordon.forced || !r.cordoned()) {
		r.becomeCandidate(true)
	}
}
