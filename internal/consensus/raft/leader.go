package raft

import "github.com/quorate/quorate/internal/consensus"

// tick is the leader's part of a tick.
func (l *leader) tick() {
	if l.opts.CheckQuorum && !l.quorumHeard() {
		l.out.event(QuorumLost{Term: l.hard.term})
		l.becomeFollower(l.hard.term, consensus.NoMember)
		return
	}
	if l.diskStalls() {
		l.out.event(DiskStalled{Term: l.hard.term})
		l.handOver()
		return
	}
	if l.applyStalls() {
		l.out.event(ApplyStalled{Term: l.hard.term})
		l.handOver()
		return
	}
	l.repeats.tick(l.clock.now, l.log.Last(), l.opts.ElectionTicks)
	l.abortStuck()
	l.expireTransfer()
	l.yield()
	if l.clock.now >= l.heartbeatAt {
		l.heartbeat()
	}
}

// finish builds the messages that leave once per Step.
func (l *leader) finish() {
	l.advanceCommit()
	l.finishChange()
	l.answerReads()
	l.advanceTransfer()
	for _, p := range l.peers {
		l.replicate(p)
	}
	l.forgetLeavers()
	l.endRound()
	if l.mustHandOver() {
		l.handOver()
	}
}

// handOver ends the term of a leader that must not lead on: a committed change removed or demoted it, or its disk or its store
// hangs. In the first case it sent the entries and the commit notice just before on the same streams, so that the successor can
// be elected at once.
func (l *leader) handOver() {
	if p := l.bestVoter(); p != nil {
		l.out.event(TransferStarted{To: p.ID})
		l.sendTimeoutNow(p.ID, l.cordoned(p.ID))
	}
	l.becomeFollower(l.hard.term, consensus.NoMember)
}
