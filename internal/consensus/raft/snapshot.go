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
func (r *Replica) needSnapshot(p *progress.Peer) {
	if !r.active(p) || r.now < p.SnapshotAt {
		return
	}
	p.BecomeSnapshot(r.log.Applied())
	r.out.NeedSnapshot = append(r.out.NeedSnapshot, SnapshotRequest{To: p.ID})
	r.event(SnapshotNeeded{Follower: p.ID})
}

func (r *Replica) snapshotSent(in *SnapshotSent) {
	p := r.peer(in.To)
	if r.role != Leader || p == nil || p.State != progress.Snapshot {
		return
	}
	if !in.OK || !r.log.HoldsAfter(in.Mark.Index) {
		p.BecomeProbe()
		p.Sent = true // try again with the next heartbeat, not at once
		return
	}
	p.Offer, p.Floor, p.Outrun = in.Mark, in.Mark.Index, false
	r.offerSnapshot(p)
}

func (r *Replica) offerSnapshot(p *progress.Peer) {
	if p.Offer.Index == 0 {
		return
	}
	meta := r.configs.MetaAt(p.Offer)
	m := consensus.Message{Kind: consensus.MsgSnapshotOffer, To: p.ID, Snapshot: &meta}
	m.Commit, m.Round = r.log.Commit(), r.round
	r.sendAsLeader(m)
}

func (r *Replica) handleSnapshotReply(p *progress.Peer, m *consensus.Message) {
	if m.Reject {
		if p.State == progress.Snapshot && m.Refused == p.Offer {
			p.Offer = consensus.Mark{}
			p.BecomeProbe()
			p.Sent = true
		}
		return
	}
	p.Acknowledged(m.Match.Index, r.round)
	if p.State == progress.Snapshot && r.log.HoldsAfter(p.Match) {
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
		r.matched = max(r.matched, meta.Mark.Index)
		r.commitTo(meta.Mark.Index)
	case meta.Mark.Index <= r.log.Commit():
		r.refuseLog(m, meta.Mark)
		return
	default:
		r.installing = &meta
		r.out.Install = &meta
		r.event(SnapshotOffered{Mark: meta.Mark})
		return
	}
	r.replySnapshot(r.log.MarkAt(r.matched))
}

// replySnapshot tells the leader up to where this log is durable and equal to its own.
func (r *Replica) replySnapshot(match consensus.Mark) {
	r.answerOffer(consensus.Message{Match: match})
}

func (r *Replica) answerOffer(m consensus.Message) {
	if r.role != Follower || r.leader == consensus.NoMember {
		return
	}
	m.Kind, m.To, m.Round = consensus.MsgSnapshotReply, r.leader, r.roundHeard
	r.send(m, true)
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
		r.commitTo(mark.Index)
		r.log.Installed(mark.Index)
		r.configs.ApplyTo(r.log.Applied())
		r.unclaimApplied()
		r.reviseConfig() // a change by protocol apply may have been applied by the snapshot
	case mark.Index > r.log.Base().Index:
		r.resetTo(&in.Meta)
	}
	r.fast.revision = max(r.fast.revision, in.Revision)
	r.forgetDecided()
	r.replySnapshot(mark)
}

func (r *Replica) resetTo(meta *consensus.SnapshotMeta) {
	if r.role == Leader {
		return // a leader's log reaches further than any snapshot of its term
	}
	r.rescue(r.log.Base().Index + 1)
	r.log.Reset(meta.Mark)
	r.matched = meta.Mark.Index
	r.restoreConfigs(meta)
	kept := *meta
	r.resetMeta = &kept
	r.event(LogReset{Mark: meta.Mark})
}

// compact forgets what is applied here, except what follows a snapshot on its way: else a slow stream would need
// another one as soon as it ends. That is bounded in time, for the shell answers every request with SnapshotSent, and in
// bytes.
func (r *Replica) compact(index consensus.Index) {
	index = min(index, r.log.Applied())
	if r.log.Bytes().Held-r.log.Bytes().Ready > r.opts.MaxSnapshotLogBytes {
		r.outrunSnapshots(index)
	}
	for _, p := range r.peers {
		if r.keepsFor(p) {
			index = min(index, p.Floor)
		}
	}
	r.log.Compact(index)
	r.configs.Compact(r.log.Base().Index)
}

// keepsFor reports whether the log keeps what follows a snapshot on its way to a member.
func (r *Replica) keepsFor(p *progress.Peer) bool {
	return r.role == Leader && p.State == progress.Snapshot && !p.Outrun
}

// outrunSnapshots gives up snapshots for which entries up to index are still kept, the oldest first, until the log is within
// its bound. Whom they were for gets a newer one, after a pause that doubles each time.
func (r *Replica) outrunSnapshots(index consensus.Index) {
	for {
		p := r.oldestSnapshot()
		if p == nil || p.Floor >= index || r.log.SizeAfter(p.Floor)-r.log.Bytes().Ready <= r.opts.MaxSnapshotLogBytes {
			return
		}
		r.counts.Outrun++
		r.event(SnapshotOutrun{Follower: p.ID, Bytes: r.log.Bytes().Held})
		p.SnapshotAt = r.now + uint64(r.opts.ElectionTicks)<<p.Outruns
		p.Outruns = min(p.Outruns+1, maxOutruns)
		if p.Offer.Index > 0 {
			p.BecomeProbe() // it has received the snapshot, and takes long to put it in place
			p.Sent = true
			continue
		}
		p.Outrun = true // SnapshotSent will end it
		r.out.StopSnapshot = append(r.out.StopSnapshot, p.ID)
	}
}

// oldestSnapshot returns the member whose snapshot makes this log keep most, or nil.
func (r *Replica) oldestSnapshot() *progress.Peer {
	var oldest *progress.Peer
	for _, p := range r.peers {
		if r.keepsFor(p) && (oldest == nil || p.Floor < oldest.Floor) {
			oldest = p
		}
	}
	return oldest
}

// maxOutruns bounds the pause before another snapshot to 64 election timeouts.
const maxOutruns = 6
