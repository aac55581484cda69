package raft

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/invariant"
)

// Replica is the state of one member in the protocol. Each concern has its file: election, append, commit, read,
// snapshot, config, propose, transfer; step.go ties them together.
type Replica struct {
	opts Options
	rng  random
	log  raftlog.Log

	// Durable state (Raft paper, figure 2). hardSeq is the persist request that carries the current term.
	term, hardTerm consensus.Term
	vote, hardVote consensus.MemberID
	// promise is what was, or will be, promised to leaders in microseconds; promiseSeq is the request that carries it.
	promise, hardPromise, promiseSeq uint64
	hardSeq                          uint64

	role   Role
	leader consensus.MemberID

	// Time, in ticks.
	now        uint64
	heardAt    uint64 // when the leader was heard last, or this term's role began
	campaignAt uint64 // when to campaign unless a leader is heard
	spread     int    // of the next wait, in ticks, while waits are short; else zero
	suspect    bool   // the connection to the leader broke: refuse nobody for its sake
	// patientUntil is when the last leader that was heard, in any term, can no longer hold a lease for that reason.
	patientUntil uint64

	// Election.
	granted, refused []consensus.MemberID
	outdone          bool // somebody who refused has a better log

	configs  configs.History
	removed  bool
	calledIn consensus.Term // told to campaign in this term, and a change has to be applied first

	// Follower: the log is known to equal the leader's up to matched (in this term), and the round echoed last.
	matched    consensus.Index
	roundHeard uint64
	roundNew   bool      // a new round was heard in this Step
	ackDue     bool      // appends of this Step want an acknowledgement
	echoDue    bool      // heartbeats of this Step want an answer
	holdings   []holding // who holds the leader's log, as they told: infer.go
	telling    []consensus.MemberID
	inferred   uint64
	told       consensus.Index // proposers were told of what this member holds up to here
	logEnds    majorityRead
	forwarded  []uint64 // reads sent to the leader and not answered yet
	installing *consensus.SnapshotMeta

	// Leader.
	peers        []*progress.Peer // of every other member, sorted by id
	noop         consensus.Index  // first entry of this term
	uncommitted  int              // bytes appended and not committed
	round        uint64
	roundOpen    bool         // the current round was begun in this Step and has not left yet
	rounds       []roundStart // for the leader lease
	leaseBarred  bool         // a transfer let somebody ignore the lease
	beatAt       uint64
	reads        readQueue         // that wait for a round
	sure         readQueue         // that were confirmed as they came, and wait for the log to commit
	answer       consensus.Message // to the reader that is being answered
	transferee   consensus.MemberID
	transferBy   uint64
	transferSent bool
	cordon       cordon // paces the attempts to hand over while this leader is cordoned

	dropped      refusedCounts
	counts       LogCounts
	conflictTold consensus.Term // a LogConflict was told in this term

	seq       uint64 // of the last persist request
	doneSeq   uint64
	resetMeta *consensus.SnapshotMeta
	out       Output
	toLeader  outbox
	boundTo   consensus.ConfigID // what the leader last said is in force, if this member's log does not say so yet
	refusing  []addressedRefusal
	hardHint  consensus.Index // commit index in the hard state persisted last
	fast      fastSide
	lastSends int // capacity that the next Output.Send will likely need
}

// New returns a replica that goes on from what its disk holds.
func New(opts Options, restored Restored) (*Replica, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	r := &Replica{
		opts:    opts,
		rng:     random{state: opts.Seed ^ uint64(opts.ID)*0x9e3779b97f4a7c15},
		configs: configs.New(opts.ID, opts.Storage, restored.Tombstones, opts.configFaults()),
		spread:  2 * opts.HeartbeatTicks,
	}
	if err := r.restoreLog(&restored); err != nil {
		return nil, err
	}
	if restored.Hard.Term > maxNumber {
		return nil, fmt.Errorf("%w: term %d is beyond what elections reach", ErrRestored, restored.Hard.Term)
	}
	r.term = max(restored.Hard.Term, restored.Base.Mark.Term)
	if r.term == restored.Hard.Term {
		r.vote = restored.Hard.Vote
	}
	if last := r.log.LastMark(); last.Term > r.term {
		return nil, fmt.Errorf("%w: last entry %v, hard state of term %d", ErrRestored, last, r.term)
	}
	r.hardTerm, r.hardVote = r.term, r.vote
	r.restoreConfigs(&restored.Base)
	r.advanceConfigs()
	if len(restored.Records) > 0 && !r.fastPath() {
		return nil, fmt.Errorf("%w: %d proposals are held, and nobody says what they touch", ErrRestored, len(restored.Records))
	}
	r.restoreRecords(&restored)
	r.removed = r.configs.IsTombstone(opts.ID)
	r.keepPromise(&restored.Hard)
	r.resetCampaign()
	r.out = Output{} // what happened before the start is no news
	return r, nil
}

// restoreLog checks the log found on disk and takes it over. All of it is durable.
func (r *Replica) restoreLog(restored *Restored) error {
	base, entries := restored.Base.Mark, restored.Entries
	for i := 1; i < len(entries); i++ {
		if entries[i].Index != entries[i-1].Index+1 || entries[i].Term < entries[i-1].Term {
			return fmt.Errorf("%w: entry %v follows %v", ErrRestored, entries[i].Mark(), entries[i-1].Mark())
		}
	}
	if len(entries) > 0 && entries[0].Index > base.Index+1 {
		return fmt.Errorf("%w: log begins at %d, base is %v", ErrRestored, entries[0].Index, base)
	}
	if len(entries) > 0 && entries[0].Index <= base.Index {
		// The store was swapped for a snapshot and the log was not reset yet, or the log was not compacted yet.
		at := int(base.Index - entries[0].Index)
		if at < len(entries) && entries[at].Term == base.Term {
			entries = entries[at+1:]
		} else {
			entries = nil
		}
	}
	if len(entries) == 0 && base.Index > 0 {
		// The disk may know an older base than the store does: the first Step says where the log begins.
		meta := restored.Base
		r.resetMeta = &meta
	}
	if last := base.Index + consensus.Index(len(entries)); restored.Applied > last {
		return fmt.Errorf("%w: applied %d, last entry %d", ErrRestored, restored.Applied, last)
	}
	r.log = raftlog.Restore(base, slices.Clone(entries), restored.Applied, restored.Hard.Commit, r.opts.MaxUnappliedBytes)
	r.hardHint = r.log.Commit()
	return nil
}

// checkLaws holds what every Step must leave true.
func (r *Replica) checkLaws() {
	if l := &r.log; !l.Ordered() {
		invariant.True(false, "base %d <= applied %d <= handed %d <= commit %d, durable %d <= last %d (member %v, term %d)",
			l.Base().Index, l.Applied(), l.Handed(), l.Commit(), l.Durable(), l.Last(), r.opts.ID, r.term)
	}
}
