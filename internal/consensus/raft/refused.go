package raft

import (
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// RefusedMessage says why a message was dropped that no member of a sound cluster sends, or that came from a member whose
// term is over. The counts are for a metric and for whoever has to find out which member misbehaves.
type RefusedMessage uint8

// The reasons.
const (
	RefusedBelowCommit RefusedMessage = 0 // a leader's log differs from what is committed here
	RefusedForeignLog  RefusedMessage = 1 // a follower acknowledges what this leader's log does not hold
	RefusedStranger    RefusedMessage = 2 // the sender is no member, and strangers do not send that kind
	RefusedMalformed   RefusedMessage = 3 // no member can mean it: entries with gaps, an unknown kind, numbers beyond reason
	RefusedTermJump    RefusedMessage = 4 // its term is further ahead than elections get
	RefusedLeader      RefusedMessage = 5 // another member leads this term
	RefusedRemoval     RefusedMessage = 6 // it says that this member was removed, whose leader and quorum are alive
	RefusedReadAnswer  RefusedMessage = 7 // an answer to a read that its sender was not asked for
)

// RefusedMessages is how many reasons there are.
const RefusedMessages = 8

var refusedMessageTexts = [RefusedMessages]string{
	"below_commit", "foreign_log", "stranger", "malformed", "term_jump", "second_leader", "removal", "read_answer",
}

func (r RefusedMessage) String() string { return refusedMessageTexts[r] }

// refusedCounts counts messages that were dropped, by reason.
type refusedCounts [RefusedMessages]uint64

func (c *refusedCounts) count(why RefusedMessage) { c[why]++ }

// stats counts what happened since the start.
type stats struct {
	dropped refusedCounts
	log     LogCounts
}

// FastCounts are what the fast path did since the start.
type FastCounts = fast.Counts

// RefusedMessages returns how many messages were dropped since the start, by reason.
func (r *Replica) RefusedMessages() [RefusedMessages]uint64 { return r.stats.dropped }

// Counts are what happened in a replica since it started.
type Counts struct {
	Fast    FastCounts
	Refused [RefusedMessages]uint64
	Log     LogCounts
}

// LogCounts say how much memory the log takes, and how often its bounds were met.
type LogCounts struct {
	raftlog.Bytes
	Withheld uint64 // appends, not taken because too much waits to be applied
	Outrun   uint64 // snapshots to followers, given up because the log had grown too far beyond them
}

// FastCounts returns what the fast path did here.
func (r *Replica) FastCounts() FastCounts { return r.fast.Counts() }

// Counts returns what happened here since the start.
func (r *Replica) Counts() Counts {
	log := r.stats.log
	log.Bytes = r.log.Bytes()
	return Counts{Fast: r.fast.Counts(), Refused: r.stats.dropped, Log: log}
}
