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
	MaxUncommittedBytes int // the most that a leader logs ahead of its commit index
	Options             Options
	Readable            func(payload []byte) bool // whether this build knows an encoded command; nil: it knows all
	Dropped             rules.Set                 // the rules that a test drops
}

// View is what a Path sees of its replica, beside the log and the configurations.
type View struct {
	Now        uint64 // in ticks
	Term       consensus.Term
	Leader     consensus.MemberID // NoMember if it is unknown
	Follows    bool               // the member is a follower
	Installing bool               // a snapshot is about to replace its state

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
	due     bool                     // a message waits for them to be durable
	askedAt uint64                   // tick of the last question about orphans

	unapplied unapplied

	// Proposer.
	tally   tally.Tally
	own     []ownRecord // records of this member's own proposals, not durable yet
	decided []tally.Decision

	ballots     []ballot // of a candidate
	evaluations []Evaluation
	counts      Counts
}

// New returns the fast path of a replica with that log and those configurations. It reads both, and changes neither.
func New(settings Settings, log *raftlog.Log, history *configs.History) *Path {
	f := &Path{settings: settings, log: log, configs: history, pool: &witness.Pool{}}
	f.opts, f.dropped = &f.settings.Options, &f.settings.Dropped
	f.unapplied = unapplied{opts: f.opts, log: log, pool: f.pool, keepBound: settings.Dropped[rules.TruncateKeepsBound]}
	return f
}

// Restore adds the records on the disk, but for those whose proposals are decided, and sets the store's revision.
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

// Counts returns the counts of this member's fast path.
func (f *Path) Counts() Counts {
	counts := f.counts
	counts.Held = f.pool.Len()
	return counts
}

// Enabled reports whether this member can tell the footprint of a command and the state of a proposal.
func (f *Path) Enabled() bool { return f.opts.State != nil }

// Open reports whether this member takes new proposals of the fast path.
func (f *Path) Open() bool { return f.Enabled() && !f.opts.Closed }

// Held returns how many records this member has.
func (f *Path) Held() int { return f.pool.Len() }

// Due reports whether a message waits until changes of the pool are on disk.
func (f *Path) Due() bool { return f.due }

// TakeChanges returns the changes of the pool since the last call. They go with the persist request being made.
func (f *Path) TakeChanges() []consensus.RecordChange {
	changes := f.changes
	f.changes, f.due = nil, false
	return changes
}

// TakeDecided returns the proposals of this member that were decided since the last call.
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

// Truncate forgets the entries from index from on, before the caller truncates the log there. Entries that this member answered
// as a leader become records of its pool again.
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

// Applied notes that the state machine has applied the entries from..to, and the store's revision after them.
func (f *Path) Applied(from, to consensus.Index, revision, now uint64) {
	f.unapplied.revision = max(f.unapplied.revision, revision)
	f.forgetApplied(from, to, now)
	f.unapplied.drop()
}

// Installed notes that a snapshot replaced the state, and the store's revision in it.
func (f *Path) Installed(revision uint64) {
	f.unapplied.drop()
	f.unapplied.revision = max(f.unapplied.revision, revision)
	f.forgetDecided()
}
