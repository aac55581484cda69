package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// beginTransfer begins to hand leadership to a voter, the one best suited if to is NoMember (Raft thesis, section 3.10). The
// leader refuses proposals until the transfer ends, so that the target can catch up. The target is never a cordoned voter.
func (l *leader) beginTransfer(to consensus.MemberID) {
	if to == consensus.NoMember {
		if p := l.bestVoter(); p != nil {
			to = p.ID
		}
	}
	if to == l.opts.ID || to == l.transfer.target || l.peer(to) == nil || !l.configs.Config().IsVoter(to) || l.cordoned(to) {
		return
	}
	if l.transfers() {
		l.abortTransfer()
	}
	l.transfer.target, l.transfer.deadline = to, l.clock.now+uint64(l.opts.ElectionTicks)
	l.out.event(TransferStarted{To: to})
}

// advanceTransfer asks the target to campaign as soon as it has the whole log.
func (l *leader) advanceTransfer() {
	if !l.transfers() {
		return
	}
	p := l.peer(l.transfer.target)
	if p == nil || !l.configs.Config().IsVoter(l.transfer.target) || l.cordoned(l.transfer.target) {
		l.abortTransfer()
		return
	}
	if p.Match == l.log.Last() && !l.transfer.sent {
		l.transfer.sent = true
		l.sendTimeoutNow(p.ID, false)
	}
}

// transfers reports whether a transfer is under way.
func (l *leader) transfers() bool { return l.transfer.target != consensus.NoMember }

// expireTransfer gives up a transfer at its deadline.
func (l *leader) expireTransfer() {
	if l.transfers() && l.clock.now >= l.transfer.deadline {
		l.abortTransfer()
	}
}

func (l *leader) sendTimeoutNow(to consensus.MemberID, force bool) {
	l.rounds.barred = true // a member may be elected without waiting for the lease from now on, at any time in this term
	l.sendInTerm(consensus.Message{Kind: consensus.MsgTimeoutNow, To: to, Force: force})
}

func (l *leader) abortTransfer() {
	l.out.event(TransferAborted{To: l.transfer.target})
	l.transfer.target, l.transfer.sent = consensus.NoMember, false
}

// yield transfers leadership while this leader is cordoned and another voter can lead at once. A change under way ends first.
func (l *leader) yield() {
	if !l.selfCordoned() || l.transfers() || !l.started() || !l.configs.Stable() {
		return
	}
	if to := l.handovers.Next(l.clock.now, l.opts.ElectionTicks, l.ableToLead()); to != consensus.NoMember {
		l.beginTransfer(to)
	}
}

// mustHandOver reports whether this leader is no voter of the configuration in force, which has committed. From a joint
// configuration it steps down only for a voter that can finish the change and to which all of this log was sent: otherwise this
// member could win the next election again, and make its log longer by a no-op every time. For the same reason it leads until
// the no-op of its own term has committed: it may be no voter since before it was elected (mayStandIn).
func (l *leader) mustHandOver() bool {
	if !l.retires() {
		return false
	}
	p := l.successor()
	return !l.configs.Config().IsJoint() || (p != nil && p.Next > l.log.Last())
}

func (l *leader) retires() bool {
	return l.started() && !slices.Contains(l.configs.Config().Voters, l.opts.ID) &&
		l.configs.Committed(l.configs.InForce())
}

// feedsSuccessor reports whether this leader only waits until all of its log has been sent. If it took more proposals
// meanwhile, the change would not end while clients write faster than that.
func (l *leader) feedsSuccessor() bool { return l.retires() && l.successor() != nil }
