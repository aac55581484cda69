package breaks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/offers"
)

// ErrUnknown is returned for the name of a negative control that there is not.
var ErrUnknown = errors.New("sim: unknown negative control")

// Set is a law that is broken on purpose.
type Set struct {
	Raft      raft.Faults
	Rules     identity.Rules
	Offers    offers.Faults
	LyingDisk bool // a sync that does nothing
	LyingLog  bool // the log does not sync
	Sessions  bool // a retry goes out under another proposal id
	Leases    bool // leases end a second early
	Watch     bool // a watcher loses some of its events on the way
	JobTwice  bool // a leader does not see that a job has ended
	Client    bool // a native client is content with less than a superquorum
}

// Break is a negative control: with it, the checkers must find something.
type Break struct {
	Name, About string
	set         func(*Set)
}

var all = []Break{
	{"commit-old-term", "a leader commits entries of earlier terms by counting",
		func(b *Set) { b.Raft.CommitOldTerm = true }},
	{"count-learners", "learners count for commits and reads", func(b *Set) { b.Raft.CountLearners = true }},
	{"vote-twice", "a member forgets its vote", func(b *Set) { b.Raft.VoteTwice = true }},
	{"ack-before-durable", "appends are acknowledged before they are on disk",
		func(b *Set) { b.Raft.AckBeforeDurable = true }},
	{"skip-read-round", "reads are answered without asking a quorum", func(b *Set) { b.Raft.SkipReadRound = true }},
	{"lying-disk", "the disk says that it synced and did not", func(b *Set) { b.LyingDisk = true }},
	{"lying-log", "the log does not sync", func(b *Set) { b.LyingLog = true }},
	{"change-in-old-term", "a leader changes the configuration before an entry of its term has committed",
		func(b *Set) { b.Raft.ChangeInOldTerm = true }},
	{"two-changes", "a leader changes the configuration while a change is under way",
		func(b *Set) { b.Raft.TwoChanges = true }},
	{"count-self", "a leader that is no voter counts itself", func(b *Set) { b.Raft.CountSelf = true }},
	{"union-of-joint", "a joint configuration decides by a majority of all its voters together",
		func(b *Set) { b.Raft.UnionOfJoint = true }},
	{"durable-too-soon", "a leader tells proposers of entries that its disk does not hold yet",
		func(b *Set) { b.Raft.DurableTooSoon = true }},
	{"infer-old-term", "members infer commits of entries of earlier terms",
		func(b *Set) { b.Raft.InferOldTerm = true }},
	{"reuse-config-ids", "configurations are named by a counter that a roll-back turns back",
		func(b *Set) { b.Raft.ReuseConfigIDs = true }},
	{"record-too-soon", "voters answer for records before those are on disk",
		func(b *Set) { b.Raft.Fast.RecordTooSoon = true }},
	{"vote-without-records", "votes do not tell what the voter holds", func(b *Set) { b.Raft.Fast.VoteWithout = true }},
	{"recover-too-few", "a new leader wants one holder more than it takes to recover a record",
		func(b *Set) { b.Raft.Fast.RecoverMore = 1 }},
	{"small-superquorum", "one voter less decides on the fast path", func(b *Set) { b.Raft.Fast.Tally.OneLess = true }},
	{"count-any-revision", "answers that name different revisions are added up",
		func(b *Set) { b.Raft.Fast.Tally.CountAnyRevision = true }},
	{"no-leader-order", "a leader fixes a revision that its log may have used",
		func(b *Set) { b.Raft.Fast.NoLeaderOrder = true }},
	{"no-log-footprint", "nobody looks whether what is logged touches the same keys",
		func(b *Set) { b.Raft.Fast.NoLogFootprint = true }},
	{"commit-as-read-index", "reads wait only for what the leader knows to have committed",
		func(b *Set) { b.Raft.Fast.CommitAsReadIndex = true }},
	{"read-past-pool", "a majority that holds proposals is taken to know of no more than its logs",
		func(b *Set) { b.Raft.Fast.ReadPastPool = true }},
	{"ignore-binding", "whoever bears a member's id counts as the member", func(b *Set) { b.Rules.IgnoreBinding = true }},
	{"count-unbound", "members that are bound to no data directory count", func(b *Set) { b.Rules.CountUnbound = true }},
	{"ignore-lives", "any start of a data directory is welcome", func(b *Set) { b.Rules.IgnoreLives = true }},
	{"found-by-majority", "a majority of empty disks founds a cluster", func(b *Set) { b.Rules.FoundByMajority = true }},
	{"serve-superseded", "a member without a quorum elects although the cluster was recovered without it",
		func(b *Set) { b.Rules.ServeSuperseded = true }},
	{"trust-denial", "a follower that denies what it acknowledged still counts",
		func(b *Set) { b.Raft.TrustDenial = true }},
	{"believe-stamps", "an offer waits for its stamp, however far ahead that is",
		func(b *Set) { b.Offers.BelieveStamps = true }},
	{"stay-paused", "a member that stopped to offer, because few offers were agreed on, never begins again",
		func(b *Set) { b.Offers.StayPaused = true }},
	{"job-twice", "a leader takes a job that has ended for one that runs", func(b *Set) { b.JobTwice = true }},
	{"no-sessions", "a retried proposal is not recognized", func(b *Set) { b.Sessions = true }},
	{"early-leases", "leases end a second early", func(b *Set) { b.Leases = true }},
	{"hasty-client", "one voter less decides what a native client offers", func(b *Set) { b.Client = true }},
	{"lossy-watch", "a watcher loses events", func(b *Set) { b.Watch = true }},
}

// All lists the negative controls.
func All() []Break { return all }

// Named returns the set that breaks the law called name; none for an empty name.
func Named(name string) (b Set, err error) {
	if name == "" {
		return b, nil
	}
	var names []string
	for i := range all {
		if all[i].Name == name {
			all[i].set(&b)
			return b, nil
		}
		names = append(names, all[i].Name)
	}
	return b, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(names, ", "))
}
