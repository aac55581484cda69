package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/proposer"
	"github.com/quorate/quorate/internal/consensus/witness"
)

// The fast path: CURP in front of Raft (Park and Ousterhout, NSDI 2019), with revisions that are fixed before the entry has
// committed. A proposer sends a proposal to the leader and, at the same time, to every other voter:
//
//	proposer --- MsgFastPropose --> leader   appends it at the next revision, syncs, evaluates: MsgFast
//	         --- MsgRecord -------> voters   hold it at the revision that they think is next, sync: MsgRecorded
//
// Once the leader and a superquorum say the same revision, the outcome is fixed: any later leader finds the entry in its log
// or learns from the votes of a quorum that enough of them hold it. Otherwise the entry goes on as any other does.
// Everything goes by attempt, a proposal at a revision. Each concern has its file: fast_voter.go accepts, fast_leader.go
// answers, fast_proposer.go counts, fast_recover.go takes over after an election, fast_forget.go lets go.
//
// The rules and why each is needed: docs/fast-path.md.

// Bounds of what a member holds for others. A proposal beyond goes the slow way.
const (
	maxPoolRecords    = 4096
	maxPoolBytes      = 2 << 20
	maxUnappliedBytes = 4 << 20 // of entries, which a vote may have to carry
	maxUnapplied      = 16 << 10
)

// Fate is what the state machine knows of a proposal.
type Fate uint8

// The fates.
const (
	FateUnknown Fate = 0
	FateDone    Fate = 1 // applied: it has a result
	FateRetired Fate = 2 // its session is over: nothing of it will ever be applied again
	FateStrange Fate = 3 // its session is not open: not yet, as far as is applied here; nothing is held or answered for it
)

// decided reports whether no later entry of the proposal can change anything.
func (f Fate) decided() bool { return f == FateDone || f == FateRetired }

// FastOptions tie the fast path to the state machine. The zero value is for members that never took part in it.
type FastOptions struct {
	// Closed takes no new proposals: what is held, and what was answered, is still told to whoever leads next, and recovered.
	Closed bool
	// Footprint returns what a command touches: the same on every member.
	Footprint func(payload []byte) consensus.Footprint
	// Revises reports whether a command may take a revision; nil if all may.
	Revises func(payload []byte) bool
	// Fate asks the state machine, which may have applied more than this replica was told.
	Fate func(id consensus.ProposalID) Fate
}

// FastCounts are what the fast path did since the start.
type FastCounts struct {
	Tried, Won uint64 // proposals of this member
	Overtaken  uint64 // committed before all had answered who said the same
	Disagreed  uint64 // committed after not all had said the same
	Accepted   uint64 // records of any member
	Answered   uint64 // as a leader
	Recovered  uint64
	Aborted    uint64
	Barred     uint64                           // offers of proposers whose records were given up again and again
	Refused    [consensus.RefusedReasons]uint64 // answers to proposals of this member
	Held       int                              // records, now
}

// Evaluation asks the shell, once Output.Seq is durable, for the results that entries will give, on the applied state: Message
// then leaves with those that are known for certain, as Verdicts[i].Reply of Entries[i].
type Evaluation struct {
	Message consensus.Message
	Entries []consensus.Entry
}

// fastSide is the part of a replica that the fast path adds.
type fastSide struct {
	pool    witness.Pool
	blame   witness.Blame
	changes []consensus.RecordChange // of the pool, not on disk yet
	due     bool                     // something waits for them

	// What is logged and not applied: claims of entries up to claimedTo.
	claims       witness.Claims
	claimed      []claim
	inLog        map[consensus.ProposalID]int
	unlogged     int // records of the pool whose proposals are not among those
	claimedTo    consensus.Index
	claimedBytes int

	revision  uint64 // of the store, at log.applied
	bound     uint64 // no entry up to boundAt has a greater revision
	boundFrom consensus.Index
	boundAt   consensus.Index

	tally       proposer.Tally
	own         []ownRecord // accepted here, for this member's own proposals, and not durable yet
	records     []consensus.Proposal
	ballots     []ballot
	evaluations []Evaluation
	verdicts    []addressedVerdict
	askedAt     uint64
	counts      FastCounts
}

// claim is one logged entry that is not applied.
type claim struct {
	index     consensus.Index
	id        consensus.ProposalID
	footprint consensus.Footprint
	bytes     int
}

// FastCounts returns what the fast path did here.
func (r *Replica) FastCounts() FastCounts {
	counts := r.fast.counts
	counts.Held = r.fast.pool.Len()
	return counts
}

func (r *Replica) fastPath() bool { return r.opts.Fast.Footprint != nil && r.opts.Fast.Fate != nil }

// opensFast reports whether this member takes new proposals of the fast path.
func (r *Replica) opensFast() bool { return r.fastPath() && !r.opts.Fast.Closed }

func (r *Replica) footprint(payload []byte) consensus.Footprint {
	return r.opts.Fast.Footprint(payload)
}

func (r *Replica) fate(id consensus.ProposalID) Fate {
	if !r.fastPath() || id.IsZero() {
		return FateUnknown
	}
	return r.opts.Fast.Fate(id)
}

// claimLog brings the claims up to the end of the log; false if there is too much that is not applied.
func (r *Replica) claimLog() bool {
	f, last := &r.fast, r.log.Last()
	f.claimedTo = max(f.claimedTo, r.log.Applied())
	if last-r.log.Applied() > maxUnapplied {
		return false
	}
	if f.claimedTo < last {
		entries := r.log.Slice(f.claimedTo+1, last)
		for i := range entries {
			r.claim(&entries[i])
		}
		f.claimedTo = last
	}
	return f.claimedBytes <= maxUnappliedBytes
}

func (r *Replica) claim(e *consensus.Entry) {
	f := &r.fast
	c := claim{index: e.Index, id: e.Proposal, bytes: e.SizeBytes()}
	switch e.Kind {
	case consensus.EntryCommand:
		c.footprint = r.footprint(e.Payload)
	case consensus.EntryConfig:
		c.footprint.Barrier = true
	}
	if r.opts.Faults.Fast.NoLogFootprint {
		c.footprint = consensus.Footprint{}
	}
	f.claims.Add(&c.footprint)
	f.claimed = append(f.claimed, c)
	f.claimedBytes += c.bytes
	if !c.id.IsZero() {
		if f.inLog == nil {
			f.inLog = map[consensus.ProposalID]int{}
		}
		if f.inLog[c.id] == 0 {
			f.unlogged -= f.pool.Attempts(c.id)
		}
		f.inLog[c.id]++
	}
}

func (r *Replica) unclaim(c *claim) {
	f := &r.fast
	f.claims.Remove(&c.footprint)
	f.claimedBytes -= c.bytes
	switch n := f.inLog[c.id]; n {
	case 0: // it names no proposal
	case 1:
		delete(f.inLog, c.id)
		f.unlogged += f.pool.Attempts(c.id)
	default:
		f.inLog[c.id] = n - 1
	}
}

// unclaimApplied lets go of what is applied.
func (r *Replica) unclaimApplied() {
	f := &r.fast
	n := 0
	for n < len(f.claimed) && f.claimed[n].index <= r.log.Applied() {
		r.unclaim(&f.claimed[n])
		n++
	}
	f.claimed = slices.Delete(f.claimed, 0, n)
	f.claimedTo = max(f.claimedTo, r.log.Applied())
}

// unclaimFrom lets go of entries that are truncated, and of what was known of revisions.
func (r *Replica) unclaimFrom(from consensus.Index) {
	f := &r.fast
	n := len(f.claimed)
	for n > 0 && f.claimed[n-1].index >= from {
		n--
		r.unclaim(&f.claimed[n])
	}
	f.claimed = slices.Delete(f.claimed, n, len(f.claimed))
	f.claimedTo = min(f.claimedTo, from-1)
	f.boundAt = 0
}

// boundOf returns the least revision that no entry of the log exceeds, as far as can be told without applying: a command
// takes the next revision, or none; one at an exact revision takes that, or none.
func (r *Replica) boundOf() uint64 {
	f := &r.fast
	if f.boundFrom != r.log.Applied() || f.boundAt < r.log.Applied() || f.boundAt > r.log.Last() {
		f.bound, f.boundFrom, f.boundAt = f.revision, r.log.Applied(), r.log.Applied()
	}
	entries := r.log.Slice(f.boundAt+1, r.log.Last())
	for i := range entries {
		switch e := &entries[i]; {
		case e.Kind != consensus.EntryCommand:
		case e.ExactRevision != 0:
			f.bound = max(f.bound, e.ExactRevision)
		case r.opts.Fast.Revises != nil && !r.opts.Fast.Revises(e.Payload):
		default:
			f.bound++
		}
	}
	f.boundAt = r.log.Last()
	return f.bound
}

// resetTally makes the tally that of this term and of the configuration in force: answers given under others never count.
func (r *Replica) resetTally() {
	f := &r.fast
	if f.tally.Len() == 0 || !r.opts.Faults.Fast.MixAnswers {
		f.tally.Reset(r.configs.Config().Voters)
		f.own = f.own[:0]
	}
	f.proposer.Rules = r.opts.Faults.Fast.Tally
}
