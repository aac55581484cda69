package breaks

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"strings"

	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/logwriter"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/offers"
	"github.com/quorate/quorate/internal/sim/users"
)

// ErrUnknown is returned for the name of a negative control that there is not.
var ErrUnknown = errors.New("sim: unknown negative control")

// Set is a law that is broken on purpose.
type Set struct {
	Raft            raft.Faults
	Rules           identity.Rules
	Offers          offers.Faults
	Log             logwriter.Faults
	Owners          clients.Faults
	Membership      membership.Faults
	Apply           apply.Faults
	Users           users.Faults
	LyingDisk       bool // a sync that does nothing
	LyingLog        bool // the log does not sync
	LyingEngine     bool // the store does not sync, if it is Pebble
	Sessions        bool // a retry goes out under another proposal id
	Leases          bool // leases end a second early
	OwnParts        bool // each member ends leases by a bound of its own
	Watch           bool // a watcher loses some of its events on the way
	MovesUntold     bool // a member that moved does not tell
	DeafToOperators bool // a member does not dial where an operator has said that others are
	AsksNobody      bool // a member that hears no leader does not ask others where it is
	RemovedUntold   bool // a removed member that runs again is not told so
	RefusedIsGone   bool // at a recovery, a refused connection counts as the operator's word
	JobTwice        bool // a leader does not see that a job has ended
	Stays           bool // native clients follow nobody
	Client          bool // a native client is content with less than a superquorum
}

// Break is a negative control: with it, the checkers must find something.
type Break struct {
	Name, About string
	set         func(*Set) // nil: the rule of the core that bears the name is dropped
}

var all = []Break{
	{"commit-old-term", "a leader commits entries of earlier terms by counting", nil},
	{"count-learners", "learners count for commits and reads", nil},
	{"vote-twice", "a member forgets its vote", nil},
	{"ack-before-durable", "appends are acknowledged before they are on disk", nil},
	{"skip-read-round", "reads are answered without asking a quorum", nil},
	{"lying-disk", "the disk says that it synced and did not", func(b *Set) { b.LyingDisk = true }},
	{"lying-log", "the log does not sync", func(b *Set) { b.LyingLog = true }},
	{"lying-engine", "Pebble does not sync: with --engine pebble", func(b *Set) { b.LyingEngine = true }},
	{"change-in-old-term", "a leader changes the configuration before an entry of its term has committed", nil},
	{"two-changes", "a leader changes the configuration while a change is under way", nil},
	{"count-self", "a leader that is no voter counts itself", nil},
	{"union-of-joint", "a joint configuration decides by a majority of all its voters together", nil},
	{"durable-too-soon", "a leader tells proposers of entries that its disk does not hold yet", nil},
	{"log-any-order", "a leader logs what it is given at once in another order", nil},
	{"infer-old-term", "members infer commits of entries of earlier terms", nil},
	{"reuse-config-ids", "configurations are named by a counter that a roll-back turns back", nil},
	{"witness-volatile", "voters answer for records before those are on disk", nil},
	{"truncate-keeps-writes", "a write that ends makes durable what came in the place of the entries that it wrote", nil},
	{"truncate-keeps-bound", "the revisions of truncated entries stand for those of the entries that came in their place", nil},
	{"vote-without", "votes do not tell what the voter holds", nil},
	{"recover-more", "a new leader wants one holder more than it takes to recover a record", nil},
	{"recover-any-payload", "a new leader adds up records of different payloads at one revision", nil},
	{"superquorum-less", "one voter less decides on the fast path", nil},
	{"proposer-any-attempt", "answers that name different revisions are added up", nil},
	{"leader-no-log-order", "a leader fixes a revision that its log may have used", nil},
	{"no-log-keys", "nobody looks whether what is logged touches the same keys",
		func(b *Set) { b.Raft.Fast.WitnessNoLogKeys, b.Raft.Fast.LeaderNoLogKeys = true, true }},
	{"read-commit-index", "reads wait only for what the leader knows to have committed", nil},
	{"read-forgets-answers", "reads do not wait for what the leader answered before it committed", nil},
	{"read-below-noop", "reads need not wait for what earlier leaders left", nil},
	{"read-old-ends", "what a voter said of its disk before a read came counts for it", nil},
	{"read-while-changing", "reads are counted by the configuration in force while a change is under way", nil},
	{"tell-core-last", "acknowledgements leave before the core knows what is on disk",
		func(b *Set) { b.Log.TellCoreLast = true }},
	{"pack-forgets", "of the results in a pack only the first counts",
		func(b *Set) { b.Apply.PackForgets = true }},
	{"read-past-pool", "a majority that holds proposals is taken to know of no more than its logs", nil},
	{"loss-by-rounds", "a heartbeat that overtakes entries tells that they were lost", nil},
	{"ignore-binding", "whoever bears a member's id counts as the member", func(b *Set) { b.Rules.IgnoreBinding = true }},
	{"count-unbound", "members that are bound to no data directory count", func(b *Set) { b.Rules.CountUnbound = true }},
	{"ignore-lives", "any start of a data directory is welcome", func(b *Set) { b.Rules.IgnoreLives = true }},
	{"obey-other-history", "a member ends itself because one of another history says that its disk is lost",
		func(b *Set) { b.Rules.ObeyOtherHistory = true }},
	{"found-by-majority", "a majority of empty disks founds a cluster", func(b *Set) { b.Rules.FoundByMajority = true }},
	{"forget-exclusion", "a process without data that was told that the cluster runs founds it again later",
		func(b *Set) { b.Rules.ForgetExclusion = true }},
	{"serve-superseded", "a member without a quorum elects although the cluster was recovered without it",
		func(b *Set) { b.Rules.ServeSuperseded = true }},
	{"believe-anybody", "what a process says of itself counts, wherever it comes from",
		func(b *Set) { b.Rules.BelieveAnybody = true }},
	{"hear-non-members", "who bears an id that no configuration has is heard, as a candidate and a leader, too",
		func(b *Set) { b.Rules.HearNonMembers = true }},
	{"any-answer-counts", "whatever speaks at the address of a member is the member",
		func(b *Set) { b.Rules.AnyAnswerCounts = true }},
	{"moves-untold", "a member that starts at another address does not tell it", func(b *Set) { b.MovesUntold = true }},
	{"deaf-to-operators", "a member does not dial where an operator has said that others are",
		func(b *Set) { b.DeafToOperators = true }},
	{"asks-nobody", "a member that hears no leader does not ask those that it finds where the leader is",
		func(b *Set) { b.AsksNobody = true }},
	{"removed-untold", "a removed member that runs again is not told so", func(b *Set) { b.RemovedUntold = true }},
	{"refused-is-gone", "who recovers a member takes a refused connection for the operator's word that another one is gone",
		func(b *Set) { b.RefusedIsGone = true }},
	{"remember-ghosts", "an epoch that a living quorum has outlived ends the members once they lose that quorum",
		func(b *Set) { b.Rules.RememberGhosts = true }},
	{"trust-denial", "a follower that denies what it acknowledged still counts", nil},
	{"believe-stamps", "an offer waits for its stamp, however far ahead that is",
		func(b *Set) { b.Offers.BelieveStamps = true }},
	{"stay-paused", "a member that stopped to offer, because few offers were agreed on, never begins again",
		func(b *Set) { b.Offers.StayPaused = true }},
	{"job-twice", "a leader takes a job that has ended for one that runs", func(b *Set) { b.JobTwice = true }},
	{"care-shrinks", "automatic care removes a dead voter for which there is no successor",
		func(b *Set) { b.Membership.CareShrinks = true }},
	{"job-by-clocks", "how long a newcomer may take to start is judged by the clocks of two leaders",
		func(b *Set) { b.Membership.JobByClocks = true }},
	{"care-by-clocks", "the hour of automatic care's budget is judged by the clocks of two leaders",
		func(b *Set) { b.Membership.CareByClocks = true }},
	{"join-takes-votes", "a process that joins may replace a voter that works",
		func(b *Set) { b.Membership.JoinTakesVotes = true }},
	{"reset-the-silent", "a voter that is only silent is removed to make room for one at its address",
		func(b *Set) { b.Membership.ResetTheSilent = true }},
	{"no-sessions", "a retried proposal is not recognized", func(b *Set) { b.Sessions = true }},
	{"early-leases", "leases end a second early", func(b *Set) { b.Leases = true }},
	{"parts-of-own-size", "members delete as many keys of a lease that ends as each of them has memory for",
		func(b *Set) { b.OwnParts = true }},
	{"session-by-id", "whoever knows the id of a native client can write in its sessions",
		func(b *Set) { b.Owners.IDInKey = true }},
	{"stay-at-endpoints", "a native client believes the endpoints for ever that it was given",
		func(b *Set) { b.Stays = true }},
	{"hasty-client", "one voter less decides what a native client offers", func(b *Set) { b.Client = true }},
	{"apply-unpermitted", "what is applied is not checked: only the member that was asked does it",
		func(b *Set) { b.Apply.Unpermitted = true }},
	{"evaluate-unpermitted", "the fast path answers early what is not permitted",
		func(b *Set) { b.Apply.EvaluateUnpermitted = true }},
	{"read-txn-free", "who may read is not asked for a transaction that only reads",
		func(b *Set) { b.Users.ReadTxnFree = true }},
	{"ungated", "commands are proposed and applied before all members know them: with --nemesis upgrade",
		func(b *Set) { b.Apply.Ungated = true }},
	{"read-early", "a read is permitted before it waits, by users that may lag",
		func(b *Set) { b.Users.ReadEarly = true }},
	{"former-passwords", "a token of a former password goes on", func(b *Set) { b.Users.FormerPasswords = true }},
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
			all[i].apply(&b)
			return b, nil
		}
		names = append(names, all[i].Name)
	}
	return b, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(names, ", "))
}

func (k *Break) apply(b *Set) {
	if k.set != nil {
		k.set(b)
		return
	}
	for rule, dropped := range Rules(&b.Raft) {
		*dropped = *dropped || rule == k.Name
	}
}

// Rules yields the switches of a struct of switches, each with the name of its rule, which is that of the switch in lower
// case with hyphens: RecoverByID drops recover-by-id.
func Rules(switches any) iter.Seq2[string, *bool] {
	return func(yield func(string, *bool) bool) { yieldRules(reflect.ValueOf(switches).Elem(), yield) }
}

func yieldRules(switches reflect.Value, yield func(string, *bool) bool) bool {
	for i := range switches.NumField() {
		field := switches.Field(i)
		if field.Kind() == reflect.Struct {
			if !yieldRules(field, yield) {
				return false
			}
			continue
		}
		name := strings.ToLower(humps.ReplaceAllString(switches.Type().Field(i).Name, "$1-$2"))
		if !yield(name, field.Addr().Interface().(*bool)) {
			return false
		}
	}
	return true
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)
