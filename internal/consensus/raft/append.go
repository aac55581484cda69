package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/invariant"
)

// becomeLeader takes office: a no-op of the new term, so that what earlier leaders left can commit (Raft paper,
// section 8), and a probe to everybody.
func (r *Replica) becomeLeader() {
	r.role = Leader
	r.setLeader(r.opts.ID)
	r.peers = r.peers[:0]
	r.round, r.roundOpen, r.rounds = 0, false, r.rounds[:0]
	r.leaseUntil, r.leaseBarred = 0, false
	r.transferee, r.transferSent = consensus.NoMember, false
	r.beatAt = r.now + uint64(r.opts.HeartbeatTicks)
	r.syncPeers()
	r.escort()
	for _, p := range r.peers {
		p.Heard = slices.Contains(r.granted, p.ID)
	}
	r.uncommitted = r.log.sizeAfter(r.log.commit)
	r.recoverRecords()
	r.noop = r.log.last() + 1
	r.appendEntry(consensus.Entry{Kind: consensus.EntryNoop})
	r.event(BecameLeader{Term: r.term, Noop: r.noop})
}

// leaveLeadership refuses what waited for it.
func (r *Replica) leaveLeadership() {
	r.failReads()
	r.peers = r.peers[:0]
	r.transferee, r.transferSent = consensus.NoMember, false
	r.uncommitted = 0
}

// appendEntry gives e its place in the leader's log.
func (r *Replica) appendEntry(e consensus.Entry) consensus.Index {
	e.Index, e.Term = r.log.last()+1, r.term
	r.log.append(e)
	r.uncommitted += e.SizeBytes()
	return e.Index
}

func (r *Replica) peer(id consensus.MemberID) *progress.Peer {
	for _, p := range r.peers {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func (r *Replica) active(p *progress.Peer) bool {
	return p.Heard && !p.Broken && r.now-p.HeardAt < uint64(r.opts.ElectionTicks)
}

// beat makes a message to everybody due, with a new round: its echoes show who is there, and what was lost.
func (r *Replica) beat() {
	r.beatAt = r.now + uint64(r.opts.HeartbeatTicks)
	r.openRound()
	for _, p := range r.peers {
		p.HeartbeatBy = true
		switch p.State {
		case progress.Probe:
			p.Sent = false // the last probe was lost, or its answer
		case progress.Snapshot:
			if p.Offer.Index > 0 && !r.active(p) {
				p.BecomeProbe() // it died with the snapshot in its hands: the log must not be kept for it for ever
				break
			}
			r.offerSnapshot(p)
		}
		if p.LeavesAt > 0 {
			r.sendAsLeader(consensus.Message{Kind: consensus.MsgRemoved, To: p.ID})
		}
	}
}

// replicate sends to one member what it lacks, as far as its pace allows, and else what is due: commit notices go out
// at once, for readers and proposers on that member wait for them.
func (r *Replica) replicate(p *progress.Peer) {
	if p.HeartbeatBy && p.CheckRound == 0 && p.State == progress.Replicate {
		p.CheckRound, p.CheckNext = r.round, p.Next
	}
	sent := false
	last := r.log.last()
	for (p.Next <= last || (p.State == progress.Probe && p.Match < last)) && !p.Paused() && r.sendAppend(p) {
		sent = true
	}
	if sent {
		return
	}
	notice := p.State == progress.Replicate && p.CommitSent < r.log.commit
	round := p.RoundSent < r.round && r.config().IsVoter(p.ID) && len(r.reads.waiting()) > 0
	durable := p.State == progress.Replicate && p.DurableSent < min(p.Awaits, r.log.durable)
	if p.HeartbeatBy || notice || round || durable {
		m := consensus.Message{Kind: consensus.MsgHeartbeat, To: p.ID}
		r.lead(p, &m)
		r.sendAsLeader(m)
	}
}

// sendAppend sends one append; false if the log no longer holds what should be sent.
func (r *Replica) sendAppend(p *progress.Peer) bool {
	prev := p.Next - 1
	term, ok := r.log.term(prev)
	if !ok {
		r.needSnapshot(p)
		return false
	}
	m := consensus.Message{Kind: consensus.MsgAppend, To: p.ID, Mark: consensus.Mark{Index: prev, Term: term}}
	size := 0
	if p.State == progress.Replicate || r.active(p) {
		m.Entries, size = r.log.sliceBytes(p.Next, r.opts.MaxMessageBytes)
	}
	r.lead(p, &m)
	r.sendAsLeader(m)
	p.SentEntries(prev+consensus.Index(len(m.Entries)), size)
	return true
}

// lead puts into a message what every message of a leader carries.
func (r *Replica) lead(p *progress.Peer, m *consensus.Message) {
	m.Commit, m.Round = r.log.commit, r.round
	m.Durable = min(r.log.durable, r.log.last())
	if r.opts.Faults.DurableTooSoon {
		m.Durable = r.log.last()
	}
	p.CommitSent, p.RoundSent, p.DurableSent, p.HeartbeatBy = m.Commit, m.Round, m.Durable, false
}

// sendAsLeader lets appends overtake the leader's own disk (Raft thesis, section 10.2.1), but never its term: a leader
// that forgot its term could lead it again with other entries.
func (r *Replica) sendAsLeader(m consensus.Message) { r.send(m, r.termPending()) }

// handleReply takes what a follower says of its log.
func (r *Replica) handleReply(p *progress.Peer, m *consensus.Message) {
	if m.Mark.Index > r.log.last() && !m.Reject {
		return
	}
	p.Round = max(p.Round, min(m.Round, r.round))
	switch {
	case m.Kind == consensus.MsgSnapshotReply:
		r.handleSnapshotReply(p, m)
	case m.Reject:
		p.Rejected(m.Mark.Index, r.log.lastNotAfter(m.Hint.Index, m.Hint.Term).Index)
	default:
		r.acknowledged(p, m)
	}
}

func (r *Replica) acknowledged(p *progress.Peer, m *consensus.Message) {
	p.Acknowledged(m.Mark.Index)
	switch {
	case p.State == progress.Probe && m.Kind == consensus.MsgAppendReply:
		p.BecomeReplicate()
	case p.State == progress.Snapshot && p.Match >= r.log.base.Index && p.Match >= p.Floor:
		p.BecomeReplicate()
	}
	if p.CheckRound == 0 || m.Round < p.CheckRound {
		return
	}
	if m.Kind == consensus.MsgHeartbeatReply && p.State == progress.Replicate && m.Hint.Index+1 < p.CheckNext {
		p.BecomeProbe() // what was sent before that round has not arrived: it was lost
	}
	p.CheckRound = 0
}

// handleAppend brings this log in line with the leader's (Raft paper, figure 2, "AppendEntries").
func (r *Replica) handleAppend(m *consensus.Message) {
	r.hearRound(m.Round)
	prev, entries := m.Mark, m.Entries
	for i := range entries {
		e := &entries[i]
		if e.Index != prev.Index+consensus.Index(i)+1 || e.Term > m.Term || e.Term < prev.Term ||
			(i > 0 && e.Term < entries[i-1].Term) {
			return // no log looks like this
		}
	}
	if prev.Index < r.log.commit {
		// What is committed here is the same there.
		skip := min(r.log.commit-prev.Index, consensus.Index(len(entries)))
		entries = entries[skip:]
		prev.Index += skip
	} else if !r.log.matches(prev) {
		hint := r.log.lastNotAfter(prev.Index, prev.Term)
		r.send(consensus.Message{
			Kind: consensus.MsgAppendReply, To: m.From, Mark: m.Mark, Hint: hint, Reject: true, Round: r.roundHeard,
		}, r.termPending())
		return
	}
	r.extend(entries)
	r.matched = max(r.matched, prev.Index+consensus.Index(len(entries)), r.log.commit)
	r.hold(m.From, m.Durable)
	r.commitTo(min(m.Commit, r.matched))
	r.ackDue = true
}

// extend appends what is new. Only a conflict truncates: an append that says less than the log holds may be an old one.
func (r *Replica) extend(entries []consensus.Entry) {
	same := 0
	for same < len(entries) && r.log.matches(entries[same].Mark()) {
		same++
	}
	if same == len(entries) {
		return
	}
	entries = entries[same:]
	from := entries[0].Index
	if from <= r.log.last() {
		if from <= r.matched {
			invariant.True(false, "one log per leader: entry %v of term %d conflicts below %d",
				entries[0].Mark(), r.term, r.matched)
		}
		r.event(Truncated{From: from, Last: r.log.last()})
		r.rescue(from)
		r.log.truncate(from)
		r.truncateConfigs(from)
	}
	r.log.append(entries...)
	r.appendConfigs(entries)
}

func (r *Replica) handleHeartbeat(m *consensus.Message) {
	if r.hearRound(m.Round) {
		r.echoDue = true
	}
	r.hold(m.From, m.Durable)
	r.commitTo(min(m.Commit, max(r.matched, r.log.commit)))
}

// hearRound reports whether a round is new: only then the leader waits for an echo.
func (r *Replica) hearRound(round uint64) bool {
	if round <= r.roundHeard {
		return false
	}
	r.roundHeard, r.roundNew = round, true
	return true
}

// acknowledge answers the leader once for all that it said in this Step. Entries are acknowledged from the disk; the
// echo of a round, for which readers wait, does not wait for it.
func (r *Replica) acknowledge() {
	ack, echo, fresh := r.ackDue, r.echoDue, r.roundNew
	r.ackDue, r.echoDue, r.roundNew = false, false, false
	if r.role != Follower || r.leader == consensus.NoMember || (!ack && !echo) {
		return
	}
	known := max(r.matched, r.log.commit)
	if ack {
		after := len(r.log.writes) > 0 && !r.opts.Faults.AckBeforeDurable
		r.send(consensus.Message{
			Kind: consensus.MsgAppendReply, To: r.leader, Mark: consensus.Mark{Index: known}, Round: r.roundHeard,
		}, after)
		r.tellProposers(known, after)
		if !after || !fresh {
			return
		}
	}
	r.send(consensus.Message{
		Kind: consensus.MsgHeartbeatReply, To: r.leader, Round: r.roundHeard,
		Mark: consensus.Mark{Index: min(known, r.log.durable)}, Hint: consensus.Mark{Index: known},
	}, r.termPending())
}
