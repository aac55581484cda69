package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// heartbeat makes a message to every peer due, with a new round: its echoes show which members are active.
func (l *leader) heartbeat() {
	l.heartbeatAt = l.clock.now + uint64(l.opts.HeartbeatTicks)
	l.beginRound()
	for _, p := range l.peers {
		p.HeartbeatBy = true
		switch p.State {
		case progress.Probe:
			p.Sent = false // the last probe, or its answer, was lost
		case progress.Snapshot:
			if p.Offer.Index > 0 && !l.active(p) {
				l.probe(p) // the member received the snapshot and died: the log must not be kept for it for ever
				break
			}
			l.offerSnapshot(p)
		}
		if p.LeavesAt > 0 {
			l.sendInTerm(consensus.Message{Kind: consensus.MsgRemoved, To: p.ID})
		}
	}
}

// replicate sends entries that a member lacks, as far as its flow control allows, and otherwise the notices that are due:
// commit notices leave at once, for readers and proposers on that member wait for them.
//
// A heartbeat may overtake appends under way, so it tells which members are active, and not which appends were lost. While an
// append may be under way, the heartbeat is a message of its own, and an append behind it, with entries or without, asks for
// the follower's log. The follower refuses that append if an earlier one was lost.
func (l *leader) replicate(p *progress.Peer) {
	asks := p.HeartbeatBy && (p.State == progress.Probe || p.Inflights.Count() > 0)
	if asks {
		l.sendHeartbeat(p)
	}
	sent := false
	last := l.log.Last()
	for (p.Next <= last || p.State == progress.Probe) && !p.Paused() && l.sendAppend(p) {
		sent = true
	}
	if sent {
		return
	}
	if asks && p.State == progress.Replicate {
		l.sendAppend(p) // the window is full, or no entry is new: without entries
		return
	}
	notice := p.State == progress.Replicate && p.CommitSent < l.log.Commit()
	round := p.RoundSent < l.rounds.last && l.configs.Config().IsVoter(p.ID) && l.reads.waiting.Asks()
	durable := p.State == progress.Replicate && p.DurableSent < min(p.Awaits, l.log.Durable())
	if p.HeartbeatBy || notice || round || durable {
		l.sendHeartbeat(p)
	}
}

func (l *leader) sendHeartbeat(p *progress.Peer) {
	m := consensus.Message{Kind: consensus.MsgHeartbeat, To: p.ID}
	l.stamp(p, &m)
	l.sendInTerm(m)
}

// probe asks a member, in a new round, how many of the entries sent to it have arrived.
func (l *leader) probe(p *progress.Peer) {
	l.beginRound()
	p.BecomeProbe(l.probeRound())
}

// probeRound is the first round whose answers end a probe that leaves now.
func (l *leader) probeRound() uint64 {
	if l.opts.Dropped[rules.LossByRounds] {
		return 0
	}
	return l.rounds.last
}

// sendAppend sends one append; false if the log no longer has the entries to send.
func (l *leader) sendAppend(p *progress.Peer) bool {
	prev := p.Next - 1
	term, ok := l.log.Term(prev)
	if !ok {
		l.needSnapshot(p)
		return false
	}
	m := consensus.Message{Kind: consensus.MsgAppend, To: p.ID, Prev: consensus.Position{Index: prev, Term: term}}
	size := 0
	if p.State == progress.Replicate && !p.Paused() || p.State == progress.Probe && l.mayBearEntries(p) && l.active(p) {
		m.Entries, size = l.log.SliceBytes(p.Next, l.opts.MaxMessageBytes)
	}
	if len(m.Entries) > 0 && p.AskedIn(l.probeRound()) && !l.opts.Dropped[rules.LossByRounds] {
		l.beginRound()
	}
	l.stamp(p, &m)
	l.sendInTerm(m)
	p.SentEntries(prev+consensus.Index(len(m.Entries)), size, l.probeRound())
	return true
}

// mayBearEntries reports whether a probe may carry entries: only if none of them was sent before.
func (l *leader) mayBearEntries(p *progress.Peer) bool {
	return p.NeverSent() || l.opts.Dropped[rules.LossByRounds]
}

// stamp sets the fields that every message of a leader carries.
func (l *leader) stamp(p *progress.Peer, m *consensus.Message) {
	m.Commit, m.Round = l.log.Commit(), l.rounds.last
	m.Durable = min(l.log.Durable(), l.log.Last())
	if l.opts.Dropped[rules.DurableTooSoon] {
		m.Durable = l.log.Last()
	}
	m.Waited = l.matchWord.of(uint64(m.Commit)) // in each message: a heartbeat may overtake the one that tells of the commit
	p.CommitSent, p.RoundSent, p.DurableSent, p.HeartbeatBy = m.Commit, m.Round, m.Durable, false
}

// diskStalls reports whether this leader's disk hangs while those of a quorum work. Such a leader can commit by the others'
// disks, but it neither applies entries nor renews leases, and the requests for its disk would grow without bound.
func (l *leader) diskStalls() bool {
	since, writing := l.log.WritingSince()
	return writing && l.clock.now-since >= uint64(l.opts.ElectionTicks) && l.log.Durable() < l.log.Commit()
}

// applyStalls reports whether as much waits to be applied on this leader as may, and its store applies nothing: it could refuse
// proposals for ever.
func (l *leader) applyStalls() bool {
	since, applying := l.log.ApplyingSince()
	return l.log.Full() && applying && l.clock.now-since >= stallElections*uint64(l.opts.ElectionTicks) &&
		l.bestVoter() != nil
}

// stallElections is the number of election timeouts that a leader may take to apply one batch while too much waits to be
// applied.
const stallElections = 3

// handleReply handles a follower's answer about its log.
func (l *leader) handleReply(p *progress.Peer, m *consensus.Message) {
	l.noteEnd(p, min(m.Round, l.rounds.last), m.Durable)
	l.noteEcho(p.ID, min(m.Round, l.rounds.last), m.Patience)
	if !m.Reject && !l.holdsMatch(m.Match) {
		l.stats.dropped.Count(filter.ForeignLog)
		return
	}
	switch {
	case m.Kind == consensus.MsgSnapshotReply:
		l.handleSnapshotReply(p, m)
	case m.Reject && l.denies(p, m):
		p.Denied = true
		l.out.event(Denied{Member: p.ID, Match: p.Match, Claimed: m.Hint.Index})
	case m.Reject && m.Hint.Index > m.Refused.Index && l.log.Matches(m.Hint):
		p.Acknowledged(m.Hint.Index, l.rounds.last) // the follower's log begins later, and equals this one up to there
		if p.State == progress.Probe && m.Round >= p.Since {
			p.BecomeReplicate()
		}
	case m.Reject && p.Lacks(m.Refused.Index, m.Round):
		l.probe(p)
		if guess := l.log.LastNotAfter(m.Hint.Index, m.Hint.Term).Index; guess <= m.Hint.Index { // not below this log
			p.Guess(min(guess, m.Refused.Index-1))
		}
	case m.Reject:
		p.Refused(m.Refused.Index, l.log.LastNotAfter(m.Hint.Index, m.Hint.Term).Index, m.Round)
	default:
		l.acknowledged(p, m)
	}
}

// denies reports whether a follower refuses an append at or above Match although it has heard a round that began after Match
// was known. A follower that still has the entries that it acknowledged hints at Match or more then, however old the refused
// append is.
func (l *leader) denies(p *progress.Peer, m *consensus.Message) bool {
	return m.Round > p.MatchRound && m.Round <= l.rounds.last && m.Refused.Index >= p.Match && m.Hint.Index < p.Match &&
		!l.opts.Dropped[rules.TrustDenial]
}

func (l *leader) acknowledged(p *progress.Peer, m *consensus.Message) {
	before := p.Match
	p.Acknowledged(m.Match.Index, l.rounds.last)
	if p.Match > max(before, l.log.Commit()) {
		l.noteMatch(p.ID, m.DiskTook)
	}
	switch {
	case p.State == progress.Probe && m.Kind == consensus.MsgAppendReply && m.Round >= p.Since:
		p.BecomeReplicate()
	case p.State == progress.Snapshot && p.Match >= l.log.Base().Index && p.Match >= p.Floor:
		l.leaveSnapshot(p)
	}
	if l.opts.Dropped[rules.LossByRounds] && m.Kind == consensus.MsgHeartbeatReply && p.State == progress.Replicate &&
		m.Received+1 < p.Next {
		l.probe(p)
	}
}

// leaveSnapshot continues with entries after the snapshot, on a member that has the log up to there or received the snapshot.
// Appends from before the snapshot may still be on their way: then the leader probes the member first.
func (l *leader) leaveSnapshot(p *progress.Peer) {
	if p.SentTo > p.Match {
		l.probe(p)
		return
	}
	p.BecomeReplicate()
}

// holdsMatch reports whether this leader's log has the entry up to which a follower says that both are equal. An entry below
// the base of this log has committed, so counting it commits no other.
func (l *leader) holdsMatch(match consensus.Position) bool {
	return match.Index < l.log.Base().Index || l.log.Matches(match) || (match == consensus.Position{}) ||
		l.opts.Dropped[rules.SkipBelowCommit]
}

// keepForSnapshots returns the index up to which the log may be compacted, at most index. The log keeps the entries after a
// snapshot on its way: else the follower would need another snapshot as soon as a slow stream ends. That is bounded in time,
// for every request is answered with SnapshotSent, and in bytes.
func (l *leader) keepForSnapshots(index consensus.Index) consensus.Index {
	if l.log.Bytes().Held-l.log.Bytes().Ready > l.opts.MaxSnapshotLogBytes {
		l.outrunSnapshots(index)
	}
	for _, p := range l.peers {
		if l.keepsFor(p) {
			index = min(index, p.Floor)
		}
	}
	return index
}

// outrunSnapshots gives up snapshots for which entries up to index are still kept, the oldest first, until the log is within
// its bound. Their followers get newer ones, after a pause that doubles each time.
func (l *leader) outrunSnapshots(index consensus.Index) {
	for {
		p := l.oldestSnapshot()
		if p == nil || p.Floor >= index || l.log.SizeAfter(p.Floor)-l.log.Bytes().Ready <= l.opts.MaxSnapshotLogBytes {
			return
		}
		l.stats.logCounts.Outrun++
		l.out.event(SnapshotOutrun{Follower: p.ID, Bytes: l.log.Bytes().Held})
		p.SnapshotAt = l.clock.now + uint64(l.opts.ElectionTicks)<<p.Outruns
		p.Outruns = min(p.Outruns+1, maxOutruns)
		if p.Offer.Index > 0 {
			l.probe(p) // the follower has received the snapshot, and installs it slowly
			p.Sent = true
			continue
		}
		p.Outrun = true // SnapshotSent will end it
		l.out.StopSnapshot = append(l.out.StopSnapshot, p.ID)
	}
}

// maxOutruns bounds the pause before another snapshot to 64 election timeouts.
const maxOutruns = 6

// advanceCommit commits the entries that a majority has durably, but only by counting entries of the own term: an earlier one
// may still be overwritten, even on a majority (Raft paper, section 5.4.2 and figure 8).
func (l *leader) advanceCommit() {
	index := consensus.Index(l.reached(l.matchOf))
	if index <= l.log.Commit() {
		return
	}
	if index < l.noop && !l.opts.Dropped[rules.CommitOldTerm] {
		return
	}
	l.commitFor(index, l.matchWord.of(uint64(index)))
}

// noteMatch notes that more of the log is on a member's disk.
func (l *leader) noteMatch(from consensus.MemberID, diskTook uint32) {
	if l.log.Last() > l.log.Commit() { // else nothing waits for it
		l.matchWord.note(l.reached(l.matchOf), from, diskTook)
	}
}
