package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// follower is what a member knows of the log of the leader that it follows.
type follower struct {
	opts    *Options
	clock   *clock
	log     *raftlog.Log
	configs *configs.History
	hard    *hardState
	soft    *softState
	out     *outbox
	journal *journal
	infer   *inference
	fast    *fast.Path
	stats   *stats

	roundHeard       uint64                  // of the leader, in this term
	roundNew         bool                    // a new round was heard in this Step
	roundInOrder     uint64                  // the highest round that came with an append, in the order in which they were sent
	ackDue           bool                    // appends of this Step want an acknowledgement
	echoDue          bool                    // heartbeats of this Step want an answer
	conflictReported consensus.Term          // a LogConflict was reported in this term
	installing       *consensus.SnapshotMeta // the snapshot that takes the place of the state
}

// handleAppend brings this log in line with the leader's (Raft paper, figure 2, "AppendEntries"). Every entry that this log
// has is compared, also below the commit index: that an index has committed does not make this log's entry the one of
// this leader, whose term may be over while this member has learned of later commits (learnCommit).
func (w *follower) handleAppend(m *consensus.Message) {
	fresh := w.hearRound(m.Round)
	w.roundInOrder = max(w.roundInOrder, m.Round)
	prev, entries := m.Prev, m.Entries
	known := w.log.Base().Index
	if w.opts.Faults.SkipBelowCommit {
		known = w.log.Commit()
	}
	if prev.Index < known {
		if skip := min(known-prev.Index, consensus.Index(len(entries))); skip > 0 {
			prev, entries = entries[skip-1].Position(), entries[skip:]
		}
		if prev.Index < known && !w.opts.Faults.SkipBelowCommit {
			w.refuseBelowBase(m)
			return
		}
	}
	if !w.log.Matches(prev) && !(w.opts.Faults.SkipBelowCommit && prev.Index <= w.log.Commit()) {
		if prev.Index <= w.log.Commit() {
			w.refuseLog(m, prev)
			return
		}
		hint := w.log.LastNotAfter(prev.Index, prev.Term)
		w.out.sendInTerm(consensus.Message{
			Kind: consensus.MsgAppendReply, To: m.From, Reject: true, Round: m.Round,
			Mismatch: consensus.Mismatch{Refused: m.Prev, Hint: hint},
		})
		return
	}
	offered := len(entries)
	if entries = w.fits(entries); !w.extend(m, entries) {
		return
	}
	w.soft.matched = max(w.soft.matched, prev.Index+consensus.Index(len(entries)))
	if w.opts.Faults.SkipBelowCommit {
		w.soft.matched = max(w.soft.matched, w.log.Commit())
	}
	w.infer.note(m.From, m.Durable)
	w.journal.commitTo(min(m.Commit, w.soft.matched))
	if len(entries) == 0 && (offered > 0 || w.log.Full()) {
		w.echoDue = w.echoDue || fresh // an acknowledgement would have the leader stream again
		return
	}
	w.ackDue = true
}

// refuseBelowBase answers an append that lies below the base of this log, where there is nothing to compare. It hints at the
// base, which was applied here, so that it is durable: the leader compares that with its own log.
func (w *follower) refuseBelowBase(m *consensus.Message) {
	w.out.send(consensus.Message{
		Kind: consensus.MsgAppendReply, To: m.From, Reject: true, Round: m.Round,
		Mismatch: consensus.Mismatch{Refused: m.Prev, Hint: w.log.Base()},
	}, true)
}

// refuseLog drops a message of a leader whose log differs from what is committed here: its term is over, or one of the two
// logs is damaged. Nothing is acknowledged; the event reports it once a term.
func (w *follower) refuseLog(m *consensus.Message, at consensus.Position) {
	w.stats.dropped.Count(filter.BelowCommit)
	if w.conflictReported != m.Term {
		w.conflictReported = m.Term
		own, _ := w.log.Term(at.Index)
		w.out.event(LogConflict{Leader: m.From, Term: m.Term, At: at, Own: own})
	}
}

// extend appends what is new. Only a conflict truncates: an append that says less than the log has may be an old one. It
// reports false, and changes nothing, if the entries conflict with what is committed, or with what this term's leader sent
// before.
func (w *follower) extend(m *consensus.Message, entries []consensus.Entry) bool {
	same := 0
	for same < len(entries) && w.log.Matches(entries[same].Position()) {
		same++
	}
	if same == len(entries) {
		return true
	}
	entries = entries[same:]
	from := entries[0].Index
	if from <= w.log.Last() {
		if from <= w.log.Commit() || from <= w.soft.matched {
			w.refuseLog(m, entries[0].Position())
			return false
		}
		w.out.event(Truncated{From: from, Last: w.log.Last()})
		w.fast.Truncate(from, w.clock.now)
		w.log.Truncate(from)
		w.journal.truncateConfigs(from)
	}
	w.log.Append(entries...)
	w.journal.appendConfigs(entries)
	return true
}

// fits returns those of a leader's entries that this member takes. One that has too much to apply takes nothing that makes
// its log longer, and acknowledges nothing before it does: the leader asks with each heartbeat.
func (w *follower) fits(entries []consensus.Entry) []consensus.Entry {
	if !w.log.Full() {
		return entries
	}
	same := 0
	for same < len(entries) && w.log.Matches(entries[same].Position()) {
		same++
	}
	if same == len(entries) || entries[same].Index <= w.log.Last() {
		return entries // known, or in the place of others
	}
	w.stats.log.Withheld++
	return entries[:same:same]
}

func (w *follower) handleHeartbeat(m *consensus.Message) {
	if w.hearRound(m.Round) {
		w.echoDue = true
	}
	w.infer.note(m.From, m.Durable)
	w.journal.commitTo(min(m.Commit, w.soft.matched))
}

// hearRound reports whether a round is new: only then the leader waits for an echo.
func (w *follower) hearRound(round uint64) bool {
	if round <= w.roundHeard {
		return false
	}
	w.roundHeard, w.roundNew = round, true
	return true
}

// acknowledge answers the leader once for all that it said in this Step. Entries are acknowledged from the disk; the
// echo of a round, for which readers wait, does not wait for it. An acknowledgement repeats the round of the last append, so
// that the leader knows that all appends before that one have arrived or are lost. A heartbeat may have overtaken them.
func (w *follower) acknowledge() {
	ack, echo, fresh := w.ackDue, w.echoDue, w.roundNew
	w.ackDue, w.echoDue, w.roundNew = false, false, false
	if w.soft.role != Follower || w.soft.leader == consensus.NoMember || (!ack && !echo) {
		return
	}
	if ack {
		after := w.log.Writing() && !w.opts.Faults.AckBeforeDurable
		w.out.send(consensus.Message{
			Kind: consensus.MsgAppendReply, To: w.soft.leader, Match: w.log.PositionAt(w.soft.matched), Round: w.roundInOrder,
			Durable:       w.log.Durable(),
			FollowerState: consensus.FollowerState{Patience: w.hard.promised(w.opts.promise())},
		}, after)
		w.infer.reportMatch(w.soft.matched, after)
		if !fresh || (!after && w.roundInOrder == w.roundHeard) {
			return
		}
	}
	w.out.send(consensus.Message{
		Kind: consensus.MsgHeartbeatReply, To: w.soft.leader, Round: w.roundHeard,
		Match: w.log.PositionAt(min(w.soft.matched, w.log.Durable())), Durable: w.log.Durable(),
		FollowerState: consensus.FollowerState{Received: w.soft.matched, Patience: w.hard.promised(w.opts.promise())},
	}, w.hard.pending())
}
