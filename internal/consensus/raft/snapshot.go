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

// needSnapshot asks the shell to feed a member that needs entries from before the log. Nobody streams to the dead.
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
	if !in.OK || !l.log.HoldsAfter(in.Mark.Index) {
		p.BecomeProbe()
		p.Sent = true // try again with the next heartbeat, not at once
		return
	}
	p.Offer, p.Floor, p.Outrun = in.Mark, in.Mark.Index, false
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
			p.Offer = consensus.Mark{}
			p.BecomeProbe()
			p.Sent = true
		}
		return
	}
	p.Acknowledged(m.Match.Index, l.rounds.last)
	if p.State == progress.Snapshot && l.log.HoldsAfter(p.Match) {
		p.BecomeReplicate()
	}
}

// handleSnapshotOffer begins an installation, unless the log gets there without.
func (r *Replica) handleSnapshotOffer(m *consensus.Message) {
	if r.hearRound(m.Round) {
		r.echoDue = true // an installation may take long, and the leader must know meanwhile that somebody is there
	}
	if m.Snapshot == nil {
		return
	}
	meta := *m.Snapshot
	switch {
	case r.installing != nil:
		return // the answer to what is being installed will tell
	case meta.Mark.Index < r.log.Base().Index:
		r.replySnapshot(r.log.Base()) // compared by the leader, as in tellBase
		return
	case r.log.Matches(meta.Mark):
		r.soft.matched = max(r.soft.matched, meta.Mark.Index)
		r.journal.commitTo(meta.Mark.Index)
	case meta.Mark.Index <= r.log.Commit():
		r.refuseLog(m, meta.Mark)
		return
	default:
		r.installing = &meta
		r.out.Install = &meta
		r.out.event(SnapshotOffered{Mark: meta.Mark})
		return
	}
	r.replySnapshot(r.log.MarkAt(r.soft.matched))
}

// replySnapshot tells the leader up to where this log is durable and equal to its own.
func (r *Replica) replySnapshot(match consensus.Mark) {
	r.answerOffer(consensus.Message{Match: match})
}

func (r *Replica) answerOffer(m consensus.Message) {
	if r.soft.role != Follower || r.soft.leader == consensus.NoMember {
		return
	}
	m.Kind, m.To, m.Round = consensus.MsgSnapshotReply, r.soft.leader, r.roundHeard
	r.out.send(m, true)
}

// snapshotInstalled goes on from the store that the shell has swapped in: it holds Meta.Mark, durably.
func (r *Replica) snapshotInstalled(in *SnapshotInstalled) {
	if r.installing == nil {
		return
	}
	r.installing = nil
	mark := in.Meta.Mark
	if in.Failed {
		r.answerOffer(consensus.Message{Refused: mark, Reject: true})
		return
	}
	for _, id := range in.Tombstones {
		r.bury(id)
	}
	switch {
	case r.log.Matches(mark):
		// The log got there while the store was being swapped: keep it.
		r.journal.commitTo(mark.Index)
		r.log.Installed(mark.Index)
		r.configs.ApplyTo(r.log.Applied())
		r.unclaimApplied()
		r.journal.reviseConfig() // a change by protocol apply may have been applied by the snapshot
	case mark.Index > r.log.Base().Index:
		r.resetTo(&in.Meta)
	}
	r.fast.revision = max(r.fast.revision, in.Revision)
	r.forgetDecided()
	r.replySnapshot(mark)
}

func (r *Replica) resetTo(meta *consensus.SnapshotMeta) {
	if r.soft.role == Leader {
		return // a leader's log reaches further than any snapshot of its term
	}
	r.rescue(r.log.Base().Index + 1)
	r.log.Reset(meta.Mark)
	r.soft.matched = meta.Mark.Index
	r.journal.restoreConfigs(meta)
	kept := *meta
	r.journal.resetMeta = &kept
	r.out.event(LogReset{Mark: meta.Mark})
}

// compact forgets what is applied here, except what follows a snapshot on its way: else a slow stream would need
// another one as soon as it ends. That is bounded in time, for the shell answers every request with SnapshotSent, and in
// bytes.
func (r *Replica) compact(index consensus.Index) {
	index = min(index, r.log.Applied())
	if r.log.Bytes().Held-r.log.Bytes().Ready > r.opts.MaxSnapshotLogBytes {
		r.repl.outrunSnapshots(index)
	}
	for _, p := range r.peers.list {
		if r.peers.keepsFor(p) {
			index = min(index, p.Floor)
		}
	}
	r.log.Compact(index)
	r.configs.Compact(r.log.Base().Index)
}

// outrunSnapshots gives up snapshots for which entries up to index are still kept, the oldest first, until the log is within
// its bound. Whom they were for gets a newer one, after a pause that doubles each time.
func (l *replication) outrunSnapshots(index consensus.Index) {
	for {
		p := l.peers.oldestSnapshot()
		if p == nil || p.Floor >= index || l.log.SizeAfter(p.Floor)-l.log.Bytes().Ready <= l.opts.MaxSnapshotLogBytes {
			return
		}
		l.stats.log.Outrun++
		l.out.event(SnapshotOutrun{Follower: p.ID, Bytes: l.log.Bytes().Held})
		p.SnapshotAt = l.clock.now + uint64(l.opts.ElectionTicks)<<p.Outruns
		p.Outruns = min(p.Outruns+1, maxOutruns)
		if p.Offer.Index > 0 {
			p.BecomeProbe() // it has received the snapshot, and takes long to put it in place
			p.Sent = true
			continue
		}
		p.Outrun = true // SnapshotSent will end it
		l.out.StopSnapshot = append(l.out.StopSnapshot, p.ID)
	}
}

// maxOutruns bounds the pause before another snapshot to 64 election timeouts.
const maxOutruns = 6
