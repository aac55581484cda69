package sim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
)

// ErrUnknownBreak is returned for the name of a negative control that there is not.
var ErrUnknownBreak = errors.New("sim: unknown negative control")

// broken is a law that is broken on purpose.
type broken struct {
	raft      raft.Faults
	rules     identity.Rules
	lyingDisk bool // a sync that does nothing
	lyingLog  bool // the log does not sync
	sessions  bool // a retry goes out under another proposal id
	leases    bool // leases end a second early
	watch     bool // a watcher loses some of its events on the way
	client    bool // a native client is content with less than a superquorum
}

// Break is a negative control: with it, the checkers must find something.
type Break struct {
	Name, About string
	set         func(*broken)
}

var breaks = []Break{
	{"commit-old-term", "a leader commits entries of earlier terms by counting",
		func(b *broken) { b.raft.CommitOldTerm = true }},
	{"count-learners", "learners count for commits and reads", func(b *broken) { b.raft.CountLearners = true }},
	{"vote-twice", "a member forgets its vote", func(b *broken) { b.raft.VoteTwice = true }},
	{"ack-before-durable", "appends are acknowledged before they are on disk",
		func(b *broken) { b.raft.AckBeforeDurable = true }},
	{"skip-read-round", "reads are answered without asking a quorum", func(b *broken) { b.raft.SkipReadRound = true }},
	{"lying-disk", "the disk says that it synced and did not", func(b *broken) { b.lyingDisk = true }},
	{"lying-log", "the log does not sync", func(b *broken) { b.lyingLog = true }},
	{"change-in-old-term", "a leader changes the configuration before an entry of its term has committed",
		func(b *broken) { b.raft.ChangeInOldTerm = true }},
	{"two-changes", "a leader changes the configuration while a change is under way",
		func(b *broken) { b.raft.TwoChanges = true }},
	{"count-self", "a leader that is no voter counts itself", func(b *broken) { b.raft.CountSelf = true }},
	{"union-of-joint", "a joint configuration decides by a majority of all its voters together",
		func(b *broken) { b.raft.UnionOfJoint = true }},
	{"durable-too-soon", "a leader tells proposers of entries that its disk does not hold yet",
		func(b *broken) { b.raft.DurableTooSoon = true }},
	{"infer-old-term", "members infer commits of entries of earlier terms",
		func(b *broken) { b.raft.InferOldTerm = true }},
	{"reuse-config-ids", "configurations are named by a counter that a roll-back turns back",
		func(b *broken) { b.raft.ReuseConfigIDs = true }},
	{"record-too-soon", "voters answer for records before those are on disk",
		func(b *broken) { b.raft.Fast.RecordTooSoon = true }},
	{"vote-without-records", "votes do not tell what the voter holds", func(b *broken) { b.raft.Fast.VoteWithout = true }},
	{"recover-too-few", "a new leader wants one holder more than it takes to recover a record",
		func(b *broken) { b.raft.Fast.RecoverMore = 1 }},
	{"small-superquorum", "one voter less decides on the fast path", func(b *broken) { b.raft.Fast.Tally.OneLess = true }},
	{"count-any-revision", "answers that name different revisions are added up",
		func(b *broken) { b.raft.Fast.Tally.CountAnyRevision = true }},
	{"no-leader-order", "a leader fixes a revision that its log may have used",
		func(b *broken) { b.raft.Fast.NoLeaderOrder = true }},
	{"no-log-footprint", "nobody looks whether what is logged touches the same keys",
		func(b *broken) { b.raft.Fast.NoLogFootprint = true }},
	{"commit-as-read-index", "reads wait only for what the leader knows to have committed",
		func(b *broken) { b.raft.Fast.CommitAsReadIndex = true }},
	{"read-past-pool", "a majority that holds proposals is taken to know of no more than its logs",
		func(b *broken) { b.raft.Fast.ReadPastPool = true }},
	{"ignore-binding", "whoever bears a member's id counts as the member", func(b *broken) { b.rules.IgnoreBinding = true }},
	{"count-unbound", "members that are bound to no data directory count", func(b *broken) { b.rules.CountUnbound = true }},
	{"ignore-lives", "any start of a data directory is welcome", func(b *broken) { b.rules.IgnoreLives = true }},
	{"found-by-majority", "a majority of empty disks founds a cluster", func(b *broken) { b.rules.FoundByMajority = true }},
	{"trust-denial", "a follower that denies what it acknowledged still counts",
		func(b *broken) { b.raft.TrustDenial = true }},
	{"no-sessions", "a retried proposal is not recognized", func(b *broken) { b.sessions = true }},
	{"early-leases", "leases end a second early", func(b *broken) { b.leases = true }},
	{"hasty-client", "one voter less decides what a native client offers", func(b *broken) { b.client = true }},
	{"lossy-watch", "a watcher loses events", func(b *broken) { b.watch = true }},
}

// Breaks lists the negative controls.
func Breaks() []Break { return breaks }

func breakage(name string) (b broken, err error) {
	if name == "" {
		return b, nil
	}
	var names []string
	for i := range breaks {
		if breaks[i].Name == name {
			breaks[i].set(&b)
			return b, nil
		}
		names = append(names, breaks[i].Name)
	}
	return b, fmt.Errorf("%w %q: there are %s", ErrUnknownBreak, name, strings.Join(names, ", "))
}
