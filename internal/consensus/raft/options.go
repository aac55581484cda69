package raft

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Options are fixed for the life of a Replica. Start from Defaults.
type Options struct {
	ID      consensus.MemberID
	Cluster consensus.ClusterID // carried for the shell's convenience; the transport refuses other clusters
	// Storage is this member's own data directory. If its configuration binds the member to another one, or binds only other
	// members, the member does not campaign: it would count its own vote.
	Storage consensus.StorageID

	ElectionTicks  int // a follower without a leader's message for so long campaigns, after a random wait up to as long again
	HeartbeatTicks int
	TickMicros     uint64 // length of a tick, for promises to members whose ticks differ; zero counts as one
	Seed           uint64 // of the generator that spreads election timeouts; mixed with ID

	// MaxMessageBytes bounds the entries of an append, the proposals of a message to the leader, and what a learner that has
	// caught up may lack.
	MaxMessageBytes     int
	MaxInflightBytes    int // sent to one follower and not yet acknowledged
	MaxInflightMessages int
	MaxUncommittedBytes int // proposals beyond it are refused with ReasonBusy
	// MaxRepeats is the number of entries among which a leader looks for repeated proposals while commits are late; each takes
	// RepeatBytes of memory. A repeat of an entry behind them is logged again.
	MaxRepeats       int
	MaxApplyingBytes int // handed out in Output.Apply and not applied; a single entry may exceed it
	// MaxUnappliedBytes bounds the committed entries that wait here to be applied. A leader beyond it refuses commands with
	// ReasonBusy, a follower takes no more entries; both until half of it is applied.
	MaxUnappliedBytes int
	// MaxSnapshotLogBytes bounds the applied entries that a leader's log keeps for a follower that receives a snapshot. Beyond,
	// the snapshot is given up for a newer one.
	MaxSnapshotLogBytes int

	PreVote     bool // ask before raising the term (Raft thesis, section 9.6)
	CheckQuorum bool // a leader without messages of a quorum steps down; members with a live leader refuse votes (section 6.2)
	// LeaderLease answers reads without a round while a quorum has confirmed the leader within an election timeout (section
	// 6.4.1). It assumes that ticks pass at nearly the same speed everywhere. It needs CheckQuorum, and it forbids followers to
	// suspect a leader early.
	LeaderLease bool

	MaxLearners    int  // zero: no limit
	StrictReconfig bool // refuse changes that would leave no reachable quorum

	Fast FastOptions
	// Readable reports whether this build knows an encoded command: the same at every call. Nil: it knows all. A leader refuses
	// others that come from elsewhere, also as records in votes, since every member that comes to such an entry may have to
	// stop.
	Readable func(payload []byte) bool

	// Dropped are the rules that a test drops, so that a checker must notice. Only tests set it.
	Dropped rules.Set
}

// FastOptions and FastCounts are those of package fast.
type (
	FastOptions = fast.Options
	FastCounts  = fast.Counts
)

// Defaults returns the options that a member has by default, for ticks of 10 ms.
func Defaults(id consensus.MemberID) Options {
	return Options{
		ID:                  id,
		ElectionTicks:       100,
		HeartbeatTicks:      10,
		Seed:                1,
		MaxMessageBytes:     256 << 10,
		MaxInflightBytes:    32 << 20,
		MaxInflightMessages: 256,
		MaxUncommittedBytes: 256 << 20,
		MaxRepeats:          1 << 16,
		MaxApplyingBytes:    64 << 20,
		MaxUnappliedBytes:   256 << 20,
		MaxSnapshotLogBytes: 1 << 30,
		PreVote:             true,
		CheckQuorum:         true,
		StrictReconfig:      true,
	}
}

// RepeatBytes is the memory that an entry takes in the table of Options.MaxRepeats: its proposal and index, and the map's
// overhead.
const RepeatBytes = 64

func (o *Options) validate() error {
	switch {
	case o.ID == consensus.NoMember:
		return fmt.Errorf("%w: no member id", ErrOptions)
	case o.HeartbeatTicks < 1:
		return fmt.Errorf("%w: %d heartbeat ticks", ErrOptions, o.HeartbeatTicks)
	case o.ElectionTicks <= o.HeartbeatTicks:
		return fmt.Errorf("%w: %d election ticks do not exceed %d heartbeat ticks", ErrOptions,
			o.ElectionTicks, o.HeartbeatTicks)
	case o.MaxMessageBytes < 1 || o.MaxInflightBytes < 1 || o.MaxInflightMessages < 1 || o.MaxUncommittedBytes < 1,
		o.MaxRepeats < 1, o.MaxApplyingBytes < 1, o.MaxUnappliedBytes < 1, o.MaxSnapshotLogBytes < 1:
		return fmt.Errorf("%w: limits must be positive", ErrOptions)
	case o.LeaderLease && !o.CheckQuorum:
		return fmt.Errorf("%w: a leader lease needs check-quorum", ErrOptions)
	}
	return nil
}

// Restored is the state that a member finds on its disk when it starts.
type Restored struct {
	Hard consensus.HardState
	// Base is the position after which the log begins. A new cluster's first members start from Position{Index: 1, Term: 1} or
	// the zero Position with the initial Config and its id; a member that joins starts from the zero value and learns the rest.
	// If the store is ahead of the log (a crash between the installation of a snapshot and the reset of the log), Base is the
	// store's: entries at or below it are dropped, and all entries if the log does not contain Base.Position.
	Base     consensus.SnapshotMeta
	Entries  []consensus.Entry // consecutive
	Applied  consensus.Index   // by the store, durably
	Revision uint64            // of the store at Applied
	// Tombstones are the members that were removed for ever, by the replicated state.
	Tombstones []consensus.MemberID
	Records    []consensus.Record // of the witness pool
}

// HasConfig reports whether the member knows a configuration: a member that joins does not.
func (r *Restored) HasConfig() bool {
	return len(r.Base.Config.Members) > 0 ||
		slices.ContainsFunc(r.Entries, func(e consensus.Entry) bool { return e.Kind == consensus.EntryConfig })
}

// fastSettings returns the settings of package fast.
func (o *Options) fastSettings() fast.Settings {
	return fast.Settings{
		Self: o.ID, ElectionTicks: o.ElectionTicks, MaxUncommittedBytes: o.MaxUncommittedBytes, Options: o.Fast,
		Readable: o.Readable, Dropped: o.Dropped,
	}
}

var (
	// ErrOptions is returned by New for options that cannot work.
	ErrOptions = errors.New("raft: invalid options")
	// ErrRestored is returned by New for a restored state that no run of a replica leaves behind.
	ErrRestored = errors.New("raft: inconsistent restored state")
)
