package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
)

// becomeLeader takes office: a no-op of the new term, so that what earlier leaders left can commit (Raft paper,
// section 8), and a probe to everybody.
func (r *Replica) becomeLeader() {
	r.role = Leader
	r.setLeader(r.opts.ID)
	r.peers = r.peers[:0]
	r.round, r.roundOpen, r.rounds = 0, false, r.rounds[:0]
	r.leaseBarred = false
	r.transferee, r.transferSent = consensus.NoMember, false
	r.beatAt = r.now + uint64(r.opts.HeartbeatTicks)
	r.syncPeers()
	r.escort()
	for _, p := range r.peers {
		p.Heard = slices.Contains(r.granted, p.ID)
	}
	r.uncommitted = r.log.SizeAfter(r.log.Commit())
	r.log.RestartApplyWatch(r.now) // a store that hangs has as much time under each leader
	r.recoverRecords()
	r.noop = r.log.Last() + 1
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
	e.Index, e.Term = r.log.Last()+1, r.term
	r.log.Append(e)
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
	return p.Heard && !p.Broken && !p.Denied && r.now-p.HeardAt < uint64(r.opts.ElectionTicks)
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
	last := r.log.Last()
	for (p.Next <= last || p.State == progress.Probe) && !p.Paused() && r.sendAppend(p) {
		sent = true
	}
	if sent {
		return
	}
	notice := p.State == progress.Replicate && p.CommitSent < r.log.Commit()
	round := p.RoundSent < r.round && r.configs.Config().IsVoter(p.ID) && len(r.reads.waiting()) > 0
	durable := p.State == progress.Replicate && p.DurableSent < min(p.Awaits, r.log.Durable())
	if p.HeartbeatBy || notice || round || durable {
		m := consensus.Message{Kind: consensus.MsgHeartbeat, To: p.ID}
		r.lead(p, &m)
		r.sendAsLeader(m)
	}
}

// sendAppend sends one append; false if the log no longer holds what should be sent.
func (r *Replica) sendAppend(p *progress.Peer) bool {
	prev := p.Next - 1
	term, ok := r.log.Term(prev)
	if !ok {
		r.needSnapshot(p)
		return false
	}
	m := consensus.Message{Kind: consensus.MsgAppend, To: p.ID, Prev: consensus.Mark{Index: prev, Term: term}}
	size := 0
	if p.State == progress.Replicate || r.active(p) {
		m.Entries, size = r.log.SliceBytes(p.Next, r.opts.MaxMessageBytes)
	}
	r.lead(p, &m)
	r.sendAsLeader(m)
	p.SentEntries(prev+consensus.Index(len(m.Entries)), size)
	return true
}

// lead puts into a message what every message of a leader carries.
func (r *Replica) lead(p *progress.Peer, m *consensus.Message) {
	m.Commit, m.Round = r.log.Commit(), r.round
	m.Durable = min(r.log.Durable(), r.log.Last())
	if r.opts.Faults.DurableTooSoon {
		m.Durable = r.log.Last()
	}
	p.CommitSent, p.RoundSent, p.DurableSent, p.HeartbeatBy = m.Commit, m.Round, m.Durable, false
}

// sendAsLeader lets appends overtake the leader's own disk (Raft thesis, section 10.2.1), but never its term: a leader
// that forgot its term could lead it again with other entries.
func (r *Replica) sendAsLeader(m consensus.Message) { r.send(m, r.termPending()) }

// handleReply takes what a follower says of its log.
func (r *Replica) handleReply(p *progress.Peer, m *consensus.Message) {
	p.Round = max(p.Round, min(m.Round, r.round))
	r.noteEcho(p.ID, min(m.Round, r.round), m.Patience)
	if !m.Reject && !r.holdsMatch(m.Match) {
		r.dropped.count(RefusedForeignLog)
		return
	}
	switch {
	case m.Kind == consensus.MsgSnapshotReply:
		r.handleSnapshotReply(p, m)
	case m.Reject && r.denies(p, m):
		p.Denied = true
		r.event(Denied{Member: p.ID, Match: p.Match, Claimed: m.Hint.Index})
	case m.Reject && m.Hint.Index > m.Refused.Index && r.log.Matches(m.Hint):
		p.Acknowledged(m.Hint.Index, r.round) // the follower has no entries so low any more, and is equal up to there
		if p.State == progress.Probe {
			p.BecomeReplicate()
		}
	case m.Reject:
		p.Rejected(m.Refused.Index, r.log.LastNotAfter(m.Hint.Index, m.Hint.Term).Index)
	default:
		r.acknowledged(p, m)
	}
}

// denies reports whether a follower refuses what lies behind Match although it has heard a round that was opened after Match
// was known. Whoever still holds what it acknowledged hints at Match or more then, however old the append that it refuses.
func (r *Replica) denies(p *progress.Peer, m *consensus.Message) bool {
	return m.Round > p.MatchRound && m.Round <= r.round && m.Refused.Index >= p.Match && m.Hint.Index < p.Match &&
		!r.opts.Faults.TrustDenial
}

func (r *Replica) acknowledged(p *progress.Peer, m *consensus.Message) {
	p.Acknowledged(m.Match.Index, r.round)
	switch {
	case p.State == progress.Probe && m.Kind == consensus.MsgAppendReply:
		p.BecomeReplicate()
	case p.State == progress.Snapshot && p.Match >= r.log.Base().Index && p.Match >= p.Floor:
		p.BecomeReplicate()
	}
	if p.CheckRound == 0 || m.Round < p.CheckRound {
		return
	}
	if m.Kind == consensus.MsgHeartbeatReply && p.State == progress.Replicate && m.Received+1 < p.CheckNext {
		p.BecomeProbe() // what was sent before that round has not arrived: it was lost
	}
	p.CheckRound = 0
}

// holdsMatch reports whether this leader's log has the entry up to which a follower says that both are equal. What lies
// below the base of this log has committed here, so that counting it commits nothing.
func (r *Replica) holdsMatch(match consensus.Mark) bool {
	return match.Index < r.log.Base().Index || r.log.Matches(match) || (match == consensus.Mark{}) ||
		r.opts.Faults.SkipBelowCommit
}

// handleAppend brings this log in line with the leader's (Raft paper, figure 2, "AppendEntries"). Every entry that this log
// holds is compared, also below the commit index: that an index has committed does not make this log's entry the one of
// this leader, whose term may be over while this member has learned of later commits (learnCommit).
func (r *Replica) handleAppend(m *consensus.Message) {
	fresh := r.hearRound(m.Round)
	prev, entries := m.Prev, m.Entries
	known := r.log.Base().Index
	if r.opts.Faults.SkipBelowCommit {
		known = r.log.Commit()
	}
	if prev.Index < known {
		if skip := min(known-prev.Index, consensus.Index(len(entries))); skip > 0 {
			prev, entries = entries[skip-1].Mark(), entries[skip:]
		}
		if prev.Index < known && !r.opts.Faults.SkipBelowCommit {
			r.tellBase(m)
			return
		}
	}
	if !r.log.Matches(prev) && !(r.opts.Faults.SkipBelowCommit && prev.Index <= r.log.Commit()) {
		if prev.Index <= r.log.Commit() {
			r.refuseLog(m, prev)
			return
		}
		hint := r.log.LastNotAfter(prev.Index, prev.Term)
		r.send(consensus.Message{
			Kind: consensus.MsgAppendReply, To: m.From, Refused: m.Prev, Hint: hint, Reject: true, Round: r.roundHeard,
		}, r.termPending())
		return
	}
	offered := len(entries)
	if entries = r.fits(entries); !r.extend(m, entries) {
		return
	}
	r.matched = max(r.matched, prev.Index+consensus.Index(len(entries)))
	if r.opts.Faults.SkipBelowCommit {
		r.matched = max(r.matched, r.log.Commit())
	}
	r.hold(m.From, m.Durable)
	r.commitTo(min(m.Commit, r.matched))
	if len(entries) < offered && len(entries) == 0 {
		r.echoDue = r.echoDue || fresh // an acknowledgement would have the leader stream again
		return
	}
	r.ackDue = true
}

// tellBase answers an append that lies below the base of this log, where there is nothing to compare. It hints at the base,
// which was applied here, so that it is durable: the leader compares that with its own log.
func (r *Replica) tellBase(m *consensus.Message) {
	r.send(consensus.Message{
		Kind: consensus.MsgAppendReply, To: m.From, Refused: m.Prev, Hint: r.log.Base(), Reject: true, Round: r.roundHeard,
	}, true)
}

// refuseLog drops a message of a leader whose log differs from what is committed here: its term is over, or one of the two
// logs is damaged. Nothing is acknowledged; the event tells of it once a term.
func (r *Replica) refuseLog(m *consensus.Message, at consensus.Mark) {
	r.dropped.count(RefusedBelowCommit)
	if r.conflictTold != m.Term {
		r.conflictTold = m.Term
		own, _ := r.log.Term(at.Index)
		r.event(LogConflict{Leader: m.From, Term: m.Term, At: at, Own: own})
	}
}

// extend appends what is new. Only a conflict truncates: an append that says less than the log holds may be an old one. It
// reports false, and changes nothing, if the entries conflict with what is committed, or with what this term's leader sent
// before.
func (r *Replica) extend(m *consensus.Message, entries []consensus.Entry) bool {
	same := 0
	for same < len(entries) && r.log.Matches(entries[same].Mark()) {
		same++
	}
	if same == len(entries) {
		return true
	}
	entries = entries[same:]
	from := entries[0].Index
	if from <= r.log.Last() {
		if from <= r.log.Commit() || from <= r.matched {
			r.refuseLog(m, entries[0].Mark())
			return false
		}
		r.event(Truncated{From: from, Last: r.log.Last()})
		r.rescue(from)
		r.log.Truncate(from)
		r.truncateConfigs(from)
	}
	r.log.Append(entries...)
	r.appendConfigs(entries)
	return true
}

// fits returns those of a leader's entries that this member takes. One that has too much to apply takes nothing that makes
// its log longer, and says nothing of it, as if the message had been lost: the leader probes with each heartbeat.
func (r *Replica) fits(entries []consensus.Entry) []consensus.Entry {
	if !r.log.Full() {
		return entries
	}
	same := 0
	for same < len(entries) && r.log.Matches(entries[same].Mark()) {
		same++
	}
	if same == len(entries) || entries[same].Index <= r.log.Last() {
		return entries // known, or in the place of others
	}
	r.counts.Withheld++
	return entries[:same:same]
}

func (r *Replica) handleHeartbeat(m *consensus.Message) {
	if r.hearRound(m.Round) {
		r.echoDue = true
	}
	r.hold(m.From, m.Durable)
	r.commitTo(min(m.Commit, r.matched))
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
	if ack {
		after := r.log.Writing() && !r.opts.Faults.AckBeforeDurable
		r.send(consensus.Message{
			Kind: consensus.MsgAppendReply, To: r.leader, Match: r.log.MarkAt(r.matched), Round: r.roundHeard,
			Patience: r.patience(),
		}, after)
		r.tellProposers(r.matched, after)
		if !after || !fresh {
			return
		}
	}
	r.send(consensus.Message{
		Kind: consensus.MsgHeartbeatReply, To: r.leader, Round: r.roundHeard, Patience: r.patience(),
		Match: r.log.MarkAt(min(r.matched, r.log.Durable())), Received: r.matched,
	}, r.termPending())
}
