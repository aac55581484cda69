package raft

import (
	"slices"

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
	cordon  *configs.Cordon

	target   consensus.MemberID    // or NoMember
	deadline uint64                // tick at which it is given up
	sent     bool                  // MsgTimeoutNow was sent
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
	if to == t.opts.ID || to == t.target || t.peers.find(to) == nil || !t.configs.Config().IsVoter(to) || t.cordon.Covers(to) {
		return
	}
	if t.active() {
		t.abort()
	}
	t.target, t.deadline = to, t.clock.now+uint64(t.opts.ElectionTicks)
	t.out.event(TransferStarted{To: to})
}

// advance asks the target to campaign as soon as it has the whole log.
func (t *transfers) advance() {
	if !t.active() {
		return
	}
	p := t.peers.find(t.target)
	if p == nil || !t.configs.Config().IsVoter(t.target) || t.cordon.Covers(t.target) {
		t.abort()
		return
	}
	if p.Match == t.log.Last() && !t.sent {
		t.sent = true
		t.sendTimeoutNow(p.ID, false)
	}
}

// reset begins or ends the term of a leader.
func (t *transfers) reset() { t.target, t.sent = consensus.NoMember, false }

// active reports whether a transfer is under way.
func (t *transfers) active() bool { return t.target != consensus.NoMember }

// expire gives up a transfer that takes too long.
func (t *transfers) expire() {
	if t.active() && t.clock.now >= t.deadline {
		t.abort()
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

// yield hands leadership on while this leader is cordoned and another voter can lead at once. A change that is
// under way comes to its end first.
func (t *transfers) yield() {
	if !t.cordon.Self() || t.active() || t.log.Commit() < t.soft.noop || !t.configs.Stable() {
		return
	}
	if to := t.pace.Next(t.clock.now, t.opts.ElectionTicks, t.peers.ableToLead()); to != consensus.NoMember {
		t.begin(to)
	}
}

// mustHandOver reports whether this leader is no voter of the configuration to come, which has committed. Out of a joint
// configuration it steps down only for somebody who can finish it, and who has been sent all of this log: it
// could win the next election again, and make its log longer by a no-op every time. For the same reason it leads until the
// no-op of its own term has committed: it may be no voter since before it was elected (mayStandIn).
func (t *transfers) mustHandOver() bool {
	if !t.retires() {
		return false
	}
	p := t.peers.successor()
	return !t.configs.Config().IsJoint() || (p != nil && p.Next > t.log.Last())
}

func (t *transfers) retires() bool {
	return t.log.Commit() >= t.soft.noop && !slices.Contains(t.configs.Config().Voters, t.opts.ID) &&
		t.configs.Committed(t.configs.InForce())
}

// feedsSuccessor reports whether this leader only waits until all of its log has been sent: if it took more meanwhile,
// the change would not end as long as clients write faster than that.
func (t *transfers) feedsSuccessor() bool { return t.retires() && t.peers.successor() != nil }
