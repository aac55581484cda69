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
func (l *replication) needSnapshot(p *progress.Peer) {
	if !l.peers.active(p) || l.clock.now < p.SnapshotAt {
		return
	}
	p.BecomeSnapshot(l.log.Applied())
	l.out.NeedSnapshot = append(l.out.NeedSnapshot, SnapshotRequest{To: p.ID})
	l.out.event(SnapshotNeeded{Follower: p.ID})
}

func (l *replication) snapshotSent(in *SnapshotSent) {
	p := l.peers.find(in.To)
	if l.soft.role != Leader || p == nil || p.State != progress.Snapshot {
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

func (l *replication) offerSnapshot(p *progress.Peer) {
	if p.Offer.Index == 0 {
		return
	}
	meta := l.configs.MetaAt(p.Offer)
	m := consensus.Message{Kind: consensus.MsgSnapshotOffer, To: p.ID, Snapshot: &meta}
	m.Commit, m.Round = l.log.Commit(), l.rounds.last
	l.out.sendInTerm(m)
}

func (l *replication) handleSnapshotReply(p *progress.Peer, m *consensus.Message) {
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

// handleSnapshotOffer begins an installation, unless the log gets there without.
func (w *follower) handleSnapshotOffer(m *consensus.Message) {
	if w.hearRound(m.Round) {
		w.echoDue = true // an installation may take long, and the leader must know meanwhile that somebody is there
	}
	if m.Snapshot == nil {
		return
	}
	meta := *m.Snapshot
	switch {
	case w.installing != nil:
		return // what is being installed will be answered
	case meta.Position.Index < w.log.Base().Index:
		w.replySnapshot(w.log.Base()) // compared by the leader, as in refuseBelowBase
		return
	case w.log.Matches(meta.Position):
		w.soft.matched = max(w.soft.matched, meta.Position.Index)
		w.journal.commitTo(meta.Position.Index)
	case meta.Position.Index <= w.log.Commit():
		w.refuseLog(m, meta.Position)
		return
	default:
		w.installing = &meta
		w.out.Install = &meta
		w.out.event(SnapshotOffered{Position: meta.Position})
		return
	}
	w.replySnapshot(w.log.PositionAt(w.soft.matched))
}

// replySnapshot reports to the leader up to where this log is durable and equal to its own.
func (w *follower) replySnapshot(match consensus.Position) {
	w.answerOffer(consensus.Message{Match: match})
}

func (w *follower) answerOffer(m consensus.Message) {
	if w.soft.role != Follower || w.soft.leader == consensus.NoMember {
		return
	}
	m.Kind, m.To, m.Round = consensus.MsgSnapshotReply, w.soft.leader, w.roundHeard
	w.out.send(m, true)
}

// snapshotInstalled continues from the store that took the place of the former one: it is at Meta.Position, durably.
func (w *follower) snapshotInstalled(in *SnapshotInstalled) {
	if w.installing == nil {
		return
	}
	w.installing = nil
	position := in.Meta.Position
	if in.Failed {
		w.answerOffer(consensus.Message{Reject: true, Mismatch: consensus.Mismatch{Refused: position}})
		return
	}
	for _, id := range in.Tombstones {
		w.journal.observer.memberRemoved(id)
	}
	switch {
	case w.log.Matches(position):
		// The log got there while the store was being swapped: keep it.
		w.journal.commitTo(position.Index)
		w.log.Installed(position.Index)
		w.configs.ApplyTo(w.log.Applied())
		w.journal.reviseConfig() // a change by protocol apply may have been applied by the snapshot
	case position.Index > w.log.Base().Index:
		w.resetTo(&in.Meta)
	}
	w.fast.Installed(in.Revision)
	w.replySnapshot(position)
}

func (w *follower) resetTo(meta *consensus.SnapshotMeta) {
	if w.soft.role == Leader {
		return // a leader's log reaches further than any snapshot of its term
	}
	w.fast.Truncate(w.log.Base().Index+1, w.clock.now)
	w.log.Reset(meta.Position)
	w.soft.matched = meta.Position.Index
	w.journal.restoreConfigs(meta)
	kept := *meta
	w.journal.resetMeta = &kept
	w.out.event(LogReset{Position: meta.Position})
}
