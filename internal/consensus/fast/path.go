package fast

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/consensus/witness"
)

// Settings are fixed for the life of a Path.
type Settings struct {
	Self                consensus.MemberID
	ElectionTicks       int
	MaxUncommittedBytes int // of a leader's log
	Options             Options
	Dropped             rules.Set // by a test
}

// View is what a Path sees of its replica, beside the log and the configurations.
type View struct {
	Now        uint64 // in ticks
	Term       consensus.Term
	Leader     consensus.MemberID // NoMember if it is unknown
	Follows    bool               // the member is a follower
	Installing bool               // a snapshot is about to take the place of its state

	// Of a leader.
	Started bool // an entry of its term has committed
	Leaving bool // it transfers leadership, or is about to
}

// Path is the fast path of one member.
type Path struct {
	settings Settings
	opts     *Options
	dropped  *rules.Set
	log      *raftlog.Log
	configs  *configs.History

	// Voter.
	pool    *witness.Pool
	blame   witness.Blame
	changes []consensus.RecordChange // of the pool, not on disk yet
	due     bool                     // something waits for them
	askedAt uint64                   // tick of the last question about orphans

	unapplied unapplied

	// Proposer.
	tally   tally.Tally
	own     []ownRecord // accepted here, for this member's own proposals, and not durable yet
	decided []tally.Decision

	ballots     []ballot // of a candidate
	evaluations []Evaluation
	counts      Counts
}

// New returns the fast path of a replica with that log and those configurations, which it never changes.
func New(settings Settings, log *raftlog.Log, history *configs.History) *Path {
	f := &Path{settings: settings, log: log, configs: history, pool: &witness.Pool{}}
	f.opts, f.dropped = &f.settings.Options, &f.settings.Dropped
	f.unapplied = unapplied{opts: f.opts, log: log, pool: f.pool, keepBound: settings.Dropped[rules.TruncateKeepsBound]}
	return f
}

// Restore takes over the records on the disk, but for those that were decided before, and the revision of the store.
func (f *Path) Restore(revision uint64, records []consensus.Record) {
	f.unapplied.revision = revision
	f.ResetTally()
	if !f.Enabled() {
		return
	}
	for i := range records {
		record := &records[i]
		if f.pool.Add(*record, f.opts.Footprint(record.Payload), 0) {
			f.unapplied.unlogged++
		}
	}
	f.forgetDecided()
}

// Counts returns what the fast path did here.
func (f *Path) Counts() Counts {
	counts := f.counts
	counts.Held = f.pool.Len()
	return counts
}

// Enabled reports whether this member knows what commands touch and what became of proposals.
func (f *Path) Enabled() bool { return f.opts.State != nil }

// Open reports whether this member takes new proposals of the fast path.
func (f *Path) Open() bool { return f.Enabled() && !f.opts.Closed }

// Held returns how many records this member has.
func (f *Path) Held() int { return f.pool.Len() }

// Due reports whether something waits until changes of the pool are on disk.
func (f *Path) Due() bool { return f.due }

// TakeChanges returns the changes of the pool since it was called last. They go with the persist request being made.
func (f *Path) TakeChanges() []consensus.RecordChange {
	changes := f.changes
	f.changes, f.due = nil, false
	return changes
}

// TakeDecided returns the proposals of this member that were decided since it was called last.
func (f *Path) TakeDecided() []tally.Decision {
	decided := f.decided
	f.decided = nil
	return decided
}

func (f *Path) stateOf(id consensus.ProposalID) ProposalState {
	if !f.Enabled() || id.IsZero() {
		return ProposalUnknown
	}
	return f.opts.State(id)
}

// Truncate drops what is known of entries from from on, before the log is truncated there. Those that this member answered
// as a leader go back into its pool.
func (f *Path) Truncate(from consensus.Index, now uint64) {
	if !f.Enabled() {
		return
	}
	from = max(from, f.log.Applied()+1)
	if from <= f.log.Last() && !f.dropped[rules.TruncateForgets] {
		entries := f.log.Slice(from, f.log.Last())
		for i := range entries {
			if e := &entries[i]; e.Answered == f.settings.Self && e.ExactRevision != 0 {
				f.keepRecord(f.recordOf(e), f.opts.Footprint(e.Payload), now)
			}
		}
	}
	f.unapplied.truncate(from)
}

// Applied notes that the state machine has applied the entries from..to, and its revision then.
func (f *Path) Applied(from, to consensus.Index, revision, now uint64) {
	f.unapplied.revision = max(f.unapplied.revision, revision)
	f.forgetApplied(from, to, now)
	f.unapplied.drop()
}

// Installed notes that a snapshot took the place of the state, and its revision.
func (f *Path) Installed(revision uint64) {
	f.unapplied.drop()
	f.unapplied.revision = max(f.unapplied.revision, revision)
	f.forgetDecided()
}
