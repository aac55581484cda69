package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// handleAppend brings this log in line with the leader's (Raft paper, figure 2, "AppendEntries"). Every entry that this log
// has is compared, also below the commit index: that an index has committed does not make this log's entry the one of
// this leader, whose term may be over while this member has learned of later commits (learnCommit).
func (r *Replica) handleAppend(m *consensus.Message) {
	fresh := r.hearRound(m.Round)
	r.follow.roundInOrder = max(r.follow.roundInOrder, m.Round)
	prev, entries := m.Prev, m.Entries
	known := r.log.Base().Index
	if r.opts.Dropped[rules.SkipBelowCommit] {
		known = r.log.Commit()
	}
	if prev.Index < known {
		if skip := min(known-prev.Index, consensus.Index(len(entries))); skip > 0 {
			prev, entries = entries[skip-1].Position(), entries[skip:]
		}
		if prev.Index < known && !r.opts.Dropped[rules.SkipBelowCommit] {
			r.refuseBelowBase(m)
			return
		}
	}
	if !r.log.Matches(prev) && !(r.opts.Dropped[rules.SkipBelowCommit] && prev.Index <= r.log.Commit()) {
		if prev.Index <= r.log.Commit() {
			r.refuseLog(m, prev)
			return
		}
		hint := r.log.LastNotAfter(prev.Index, prev.Term)
		r.sendInTerm(consensus.Message{
			Kind: consensus.MsgAppendReply, To: m.From, Reject: true, Round: m.Round,
			Mismatch: consensus.Mismatch{Refused: m.Prev, Hint: hint},
		})
		return
	}
	offered := len(entries)
	if entries = r.fits(entries); !r.extend(m, entries) {
		return
	}
	r.follow.matched = max(r.follow.matched, prev.Index+consensus.Index(len(entries)))
	if r.opts.Dropped[rules.SkipBelowCommit] {
		r.follow.matched = max(r.follow.matched, r.log.Commit())
	}
	r.noteDurable(m.From, m.Durable, 0)
	r.hearCommit(m)
	if len(entries) == 0 && (offered > 0 || r.log.Full()) {
		r.follow.echoDue = r.follow.echoDue || fresh // an acknowledgement would let the leader stream again
		return
	}
	r.follow.ackDue = true
}

// refuseBelowBase answers an append that lies below the base of this log, where no entry is left to compare. It hints at the
// base, which was applied here and so is durable: the leader compares that with its own log.
func (r *Replica) refuseBelowBase(m *consensus.Message) {
	r.send(consensus.Message{
		Kind: consensus.MsgAppendReply, To: m.From, Reject: true, Round: m.Round,
		Mismatch: consensus.Mismatch{Refused: m.Prev, Hint: r.log.Base()},
	}, true)
}

// refuseLog drops a message of a leader whose log differs from entries that are committed here: its term is over, or one of the
// two logs is damaged. The member acknowledges nothing; the event reports it once a term.
func (r *Replica) refuseLog(m *consensus.Message, at consensus.Position) {
	r.stats.dropped.Count(filter.BelowCommit)
	if !r.follow.conflictReported {
		r.follow.conflictReported = true
		own, _ := r.log.Term(at.Index)
		r.out.event(LogConflict{Leader: m.From, Term: m.Term, At: at, Own: own})
	}
}

// extend appends new entries. Only a conflict truncates: an append that ends before the log does may be an old one. It returns
// false, and changes nothing, if the entries conflict with committed ones, or with those that this term's leader sent before.
func (r *Replica) extend(m *consensus.Message, entries []consensus.Entry) bool {
	same := 0
	for same < len(entries) && r.log.Matches(entries[same].Position()) {
		same++
	}
	if same == len(entries) {
		return true
	}
	entries = entries[same:]
	from := entries[0].Index
	if from <= r.log.Last() {
		if from <= r.log.Commit() || from <= r.follow.matched {
			r.refuseLog(m, entries[0].Position())
			return false
		}
		r.truncate(from)
	}
	r.append(entries)
	return true
}

// fits returns those of a leader's entries that this member takes. A member with too much to apply takes no entries that make
// its log longer, and so does not acknowledge them: the leader sends them again after a heartbeat.
func (r *Replica) fits(entries []consensus.Entry) []consensus.Entry {
	if !r.log.Full() {
		return entries
	}
	same := 0
	for same < len(entries) && r.log.Matches(entries[same].Position()) {
		same++
	}
	if same == len(entries) || entries[same].Index <= r.log.Last() {
		return entries // none is new, or they replace others
	}
	r.stats.logCounts.Withheld++
	return entries[:same:same]
}

func (r *Replica) handleHeartbeat(m *consensus.Message) {
	if r.hearRound(m.Round) {
		r.follow.echoDue = true
	}
	r.noteDurable(m.From, m.Durable, 0)
	r.hearCommit(m)
}

// hearCommit commits what the leader has committed, as far as this log equals the leader's. A heartbeat that tells of a commit,
// and what it waited for, may overtake the entries.
func (r *Replica) hearCommit(m *consensus.Message) {
	told := &r.follow.told
	if m.WaitedFor != consensus.NoMember && uint64(m.Commit) > told.upto {
		told.upto, told.waited = uint64(m.Commit), m.Waited
	}
	index := min(m.Commit, r.follow.matched)
	r.commitFor(index, told.of(uint64(index)))
}

// hearRound reports whether a round is new: the leader waits for the echoes of new rounds only.
func (r *Replica) hearRound(round uint64) bool {
	if round <= r.follow.roundHeard {
		return false
	}
	r.follow.roundHeard, r.follow.roundNew = round, true
	return true
}

// acknowledge answers all messages of the leader in this Step at once. An acknowledgement of entries waits for the disk; the
// echo of a round, for which readers wait, does not. An acknowledgement repeats the round of the last append, so that the
// leader knows that all appends before that one have arrived or are lost. A heartbeat may have overtaken them.
func (r *Replica) acknowledge() {
	ack, echo, fresh := r.follow.ackDue, r.follow.echoDue, r.follow.roundNew
	r.follow.ackDue, r.follow.echoDue, r.follow.roundNew = false, false, false
	if r.role != Follower || r.leader == consensus.NoMember || (!ack && !echo) {
		return
	}
	if ack {
		after := r.log.Writing() && !r.opts.Dropped[rules.AckBeforeDurable]
		r.send(consensus.Message{
			Kind: consensus.MsgAppendReply, To: r.leader, Round: r.follow.roundInOrder,
			Match:         r.log.PositionAt(r.follow.matched),
			Durable:       r.log.Durable(),
			FollowerState: consensus.FollowerState{Patience: r.hard.promised(r.opts.promise())},
		}, after)
		r.reportMatch(r.follow.matched, after)
		if !fresh || (!after && r.follow.roundInOrder == r.follow.roundHeard) {
			return
		}
	}
	r.sendInTerm(consensus.Message{
		Kind: consensus.MsgHeartbeatReply, To: r.leader, Round: r.follow.roundHeard,
		Match: r.log.PositionAt(min(r.follow.matched, r.log.Durable())), Durable: r.log.Durable(),
		FollowerState: consensus.FollowerState{Received: r.follow.matched, Patience: r.hard.promised(r.opts.promise())},
	})
}
