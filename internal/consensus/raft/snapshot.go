package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
)

// A snapshot travels outside the core, from shell to shell:
//
//	leader                              follower
//	NeedSnapshot ->  shell streams  ->  shell keeps it
//	SnapshotSent <-
//	MsgSnapshotOffer ---------------->  Install -> shell swaps the store -> SnapshotInstalled
//	MsgSnapshotReply <----------------  Reset (durable)
//
// The offer is repeated with every heartbeat until it is answered (Raft paper, section 7) or the follower is gone.

// needSnapshot asks the shell to send a snapshot to a member that needs entries from before the log, unless it is unreachable.
func (l *leader) needSnapshot(p *progress.Peer) {
	if !l.active(p) || l.clock.now < p.SnapshotAt {
		return
	}
	p.BecomeSnapshot(l.log.Applied())
	l.out.NeedSnapshot = append(l.out.NeedSnapshot, SnapshotRequest{To: p.ID})
	l.out.event(SnapshotNeeded{Follower: p.ID})
}

func (l *leader) snapshotSent(in *SnapshotSent) {
	p := l.peer(in.To)
	if p == nil || p.State != progress.Snapshot {
		return
	}
	if !in.OK || !l.log.HoldsAfter(in.Position.Index) {
		l.probe(p)
		p.Sent = true // try again with the next heartbeat, not at once
		return
	}
	p.Offer, p.Floor, p.Outrun = in.Position, in.Position.Index, false
	l.offerSnapshot(p)
}

func (l *leader) offerSnapshot(p *progress.Peer) {
	if p.Offer.Index == 0 {
		return
	}
	meta := l.configs.MetaAt(p.Offer)
	m := consensus.Message{Kind: consensus.MsgSnapshotOffer, To: p.ID, Snapshot: &meta}
	m.Commit, m.Round = l.log.Commit(), l.rounds.last
	l.sendInTerm(m)
}

func (l *leader) handleSnapshotReply(p *progress.Peer, m *consensus.Message) {
	if m.Reject {
		if p.State == progress.Snapshot && m.Refused == p.Offer {
			p.Offer = consensus.Position{}
			l.probe(p)
			p.Sent = true
		}
		return
	}
	p.Acknowledged(m.Match.Index, l.rounds.last)
	if p.State == progress.Snapshot && l.log.HoldsAfter(p.Match) {
		l.leaveSnapshot(p)
	}
}

// handleSnapshotOffer begins an installation, unless the log reaches the snapshot's position without.
func (r *Replica) handleSnapshotOffer(m *consensus.Message) {
	if r.hearRound(m.Round) {
		r.follow.echoDue = true // an installation may take long: the echo keeps this member active for the leader
	}
	if m.Snapshot == nil {
		return
	}
	meta := *m.Snapshot
	switch {
	case r.installing != nil:
		return // the answer follows the installation
	case meta.Position.Index < r.log.Base().Index:
		r.replySnapshot(r.log.Base()) // compared by the leader, as in refuseBelowBase
		return
	case r.log.Matches(meta.Position):
		r.follow.matched = max(r.follow.matched, meta.Position.Index)
		r.commitTo(meta.Position.Index)
	case meta.Position.Index <= r.log.Commit():
		r.refuseLog(m, meta.Position)
		return
	default:
		r.installing = &meta
		r.out.Install = &meta
		r.out.event(SnapshotOffered{Position: meta.Position})
		return
	}
	r.replySnapshot(r.log.PositionAt(r.follow.matched))
}

// replySnapshot reports to the leader the position up to which this log is durable and equal to the leader's.
func (r *Replica) replySnapshot(match consensus.Position) {
	r.answerOffer(consensus.Message{Match: match})
}

func (r *Replica) answerOffer(m consensus.Message) {
	if r.role != Follower || r.leader == consensus.NoMember {
		return
	}
	m.Kind, m.To, m.Round = consensus.MsgSnapshotReply, r.leader, r.follow.roundHeard
	r.send(m, true)
}

// snapshotInstalled continues from the installed store: it is at Meta.Position, durably.
func (r *Replica) snapshotInstalled(in *SnapshotInstalled) {
	if r.installing == nil {
		return
	}
	r.installing = nil
	position := in.Meta.Position
	if in.Failed {
		r.answerOffer(consensus.Message{Reject: true, Mismatch: consensus.Mismatch{Refused: position}})
		return
	}
	for _, id := range in.Tombstones {
		r.memberRemoved(id)
	}
	switch {
	case r.log.Matches(position):
		// The log reached the position while the shell replaced the store: the log is kept.
		r.installedTo(position.Index)
	case position.Index > r.log.Base().Index:
		r.resetTo(&in.Meta)
	}
	r.fast.Installed(in.Revision)
	r.replySnapshot(position)
}
