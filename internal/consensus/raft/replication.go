package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// heartbeat makes a message to everybody due, with a new round: its echoes show who is there.
func (l *leader) heartbeat() {
	l.heartbeatAt = l.clock.now + uint64(l.opts.HeartbeatTicks)
	l.beginRound()
	for _, p := range l.peers {
		p.HeartbeatBy = true
		switch p.State {
		case progress.Probe:
			p.Sent = false // the last probe was lost, or its answer
		case progress.Snapshot:
			if p.Offer.Index > 0 && !l.active(p) {
				l.probe(p) // it died with the snapshot in its hands: the log must not be kept for it for ever
				break
			}
			l.offerSnapshot(p)
		}
		if p.LeavesAt > 0 {
			l.sendInTerm(consensus.Message{Kind: consensus.MsgRemoved, To: p.ID})
		}
	}
}

// replicate sends to one member what it lacks, as far as its pace allows, and else what is due: commit notices go out
// at once, for readers and proposers on that member wait for them.
//
// A heartbeat may overtake what is under way, so that it says who is there and not what was lost. Where anything may be under
// way it is a message of its own, and an append that travels behind it asks: one with entries, or else one without. The
// follower refuses it if something before it was lost.
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
		l.sendAppend(p) // the window is full, or there is nothing new: without entries
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

// probe asks a member, in a new round, how much of what was sent has arrived.
func (l *leader) probe(p *progress.Peer) {
	l.beginRound()
	p.BecomeProbe(l.probeRound())
}

// probeRound is the round from which on answers end a probe that leaves now.
func (l *leader) probeRound() uint64 {
	if l.opts.Dropped[rules.LossByRounds] {
		return 0
	}
	return l.rounds.last
}

// sendAppend sends one append; false if the log no longer has what should be sent.
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

// mayBearEntries reports whether a probe may: only entries of which none was sent before.
func (l *leader) mayBearEntries(p *progress.Peer) bool {
	return p.NeverSent() || l.opts.Dropped[rules.LossByRounds]
}

// stamp puts into a message what every message of a leader carries.
func (l *leader) stamp(p *progress.Peer, m *consensus.Message) {
	m.Commit, m.Round = l.log.Commit(), l.rounds.last
	m.Durable = min(l.log.Durable(), l.log.Last())
	if l.opts.Dropped[rules.DurableTooSoon] {
		m.Durable = l.log.Last()
	}
	p.CommitSent, p.RoundSent, p.DurableSent, p.HeartbeatBy = m.Commit, m.Round, m.Durable, false
}

// diskStalls reports whether this leader's disk hangs while those of a quorum do not. Such a leader can commit by the
// others', but neither apply nor renew leases, and what waits for its disk would grow without bound.
func (l *leader) diskStalls() bool {
	since, writing := l.log.WritingSince()
	return writing && l.clock.now-since >= uint64(l.opts.ElectionTicks) && l.log.Durable() < l.log.Commit()
}

// applyStalls reports whether this leader has as much to apply as it may keep, and gets no further with it: it could refuse
// proposals for ever.
func (l *leader) applyStalls() bool {
	since, applying := l.log.ApplyingSince()
	return l.log.Full() && applying && l.clock.now-since >= stallElections*uint64(l.opts.ElectionTicks) &&
		l.bestVoter() != nil
}

// stallElections is how many election timeouts a leader may take to apply one batch while it has too much to apply.
const stallElections = 3

// handleReply takes what a follower says of its log.
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
		p.Acknowledged(m.Hint.Index, l.rounds.last) // the follower has no entries so low any more, and is equal up to there
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

// denies reports whether a follower refuses what lies behind Match although it has heard a round that was opened after Match
// was known. A follower that still has what it acknowledged hints at Match or more then, however old the append that it
// refuses.
func (l *leader) denies(p *progress.Peer, m *consensus.Message) bool {
	return m.Round > p.MatchRound && m.Round <= l.rounds.last && m.Refused.Index >= p.Match && m.Hint.Index < p.Match &&
		!l.opts.Dropped[rules.TrustDenial]
}

func (l *leader) acknowledged(p *progress.Peer, m *consensus.Message) {
	p.Acknowledged(m.Match.Index, l.rounds.last)
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

// leaveSnapshot lets entries follow to a member that holds the log, or what it was sent of a snapshot. What was sent to it
// before the snapshot may still be on its way: then it is asked first.
func (l *leader) leaveSnapshot(p *progress.Peer) {
	if p.SentTo > p.Match {
		l.probe(p)
		return
	}
	p.BecomeReplicate()
}

// holdsMatch reports whether this leader's log has the entry up to which a follower says that both are equal. What lies
// below the base of this log has committed here, so that counting it commits nothing.
func (l *leader) holdsMatch(match consensus.Position) bool {
	return match.Index < l.log.Base().Index || l.log.Matches(match) || (match == consensus.Position{}) ||
		l.opts.Dropped[rules.SkipBelowCommit]
}

// keepForSnapshots returns up to where the log may be compacted, at most to index: what follows a snapshot on its way is kept,
// else a slow stream would need another one as soon as it ends. That is bounded in time, for every request is answered with
// SnapshotSent, and in bytes.
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
// its bound. Whom they were for gets a newer one, after a pause that doubles each time.
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
			l.probe(p) // it has received the snapshot, and takes long to put it in place
			p.Sent = true
			continue
		}
		p.Outrun = true // SnapshotSent will end it
		l.out.StopSnapshot = append(l.out.StopSnapshot, p.ID)
	}
}

// maxOutruns bounds the pause before another snapshot to 64 election timeouts.
const maxOutruns = 6

// advanceCommit commits what a majority has durably, but only by counting entries of the own term: an earlier one
// may still be overwritten, even on a majority (Raft paper, section 5.4.2 and figure 8).
func (l *leader) advanceCommit() {
	index := consensus.Index(l.reached(l.matchOf))
	if index <= l.log.Commit() {
		return
	}
	if index < l.noop && !l.opts.Dropped[rules.CommitOldTerm] {
		return
	}
	l.commitTo(index)
}
