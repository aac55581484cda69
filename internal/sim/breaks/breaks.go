package breaks

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/backup/attempt"
	"github.com/quorate/quorate/internal/backup/survey"
	"github.com/quorate/quorate/internal/backup/turns"
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/clients/streams"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/logwriter"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/sim/users"
)

// ErrUnknown is returned for an unknown name of a negative control.
var ErrUnknown = errors.New("sim: unknown negative control")

// Set says which laws are broken on purpose.
type Set struct {
	Raft            rules.Set
	Rules           identity.Rules
	Offers          offers.Faults
	Log             logwriter.Faults
	Leases          expiry.Faults
	Streams         streams.Faults
	Membership      membership.Faults
	Apply           apply.Faults
	Ships           turns.Faults
	Proves          attempt.Faults
	Surveys         survey.Faults
	Users           users.Faults
	LyingDisk       bool // a sync that does nothing
	LyingLog        bool // the log does not sync
	LyingEngine     bool // the store does not sync, if it is Pebble
	Sessions        bool // a retry goes out under another proposal id
	OwnParts        bool // each member ends leases by a bound of its own
	Watch           bool // a watcher loses some of its events
	MovesUntold     bool // a member that moved does not report its new address
	DeafToOperators bool // a member ignores the addresses that an operator gave it
	AsksNobody      bool // a member that knows no leader does not ask others for addresses
	RemovedUntold   bool // a removed member that runs again is not notified of its removal
	RefusedIsGone   bool // at a recovery, a refused connection proves that a member is lost
	JobTwice        bool // a leader does not see that a job has ended
	Stays           bool // native clients do not follow the members to new addresses
	Client          bool // a native client accepts less than a superquorum
	Untold          bool // members do not tell the leader which native clients they hear
	HastyLevel      bool // a leader raises the feature level without asking for its policy
	KeepsSilent     bool // sessions of silent native clients are not retired
	LevelStays      bool // members do not see that all of them know a higher feature level
	IgnoreFindings  bool // a leader counts time towards the next level while a member finds something wrong
	EarlyClock      bool // a leader reads its clock, and later the revision that it tells with it
	DowngradeStays  bool // a leader does not see that all members have gone back to the former release
	OwnCounts       bool // each member counts for quotas by steps of its own size
	OwnHeads        bool // each member keeps as many heads of the audit as it likes
}

// Break is a negative control: with it, the checkers must report a violation.
type Break struct {
	Name  string
	About string // effect on members or disks; of a rule of the protocol, what the rule demands
	Law   string // the reported law: one property of package check, or several with commas between them
	With  string // the flag without which it is not noticed, or empty
	drops []rules.Rule
	set   func(*Set)
}

// others are the controls that drop no rule of the protocol, or more than one.
var others = []Break{
	{Name: "no-log-keys", About: "witness-no-log-keys and leader-no-log-keys are dropped together", Law: "fast-path",
		drops: []rules.Rule{rules.WitnessNoLogKeys, rules.LeaderNoLogKeys}},
	{Name: "lying-disk", About: "the disk says that it synced and did not", Law: "durable-before-ack",
		set: func(b *Set) { b.LyingDisk = true }},
	{Name: "lying-log", About: "the log does not sync", Law: "durable-before-ack, recovery",
		set: func(b *Set) { b.LyingLog = true }},
	{Name: "lying-engine", About: "Pebble does not sync", Law: "recovery", With: "--engine pebble",
		set: func(b *Set) { b.LyingEngine = true }},
	{Name: "tell-core-last", About: "acknowledgements leave before the core knows what is on disk", Law: "real-time-order",
		set: func(b *Set) { b.Log.TellCoreLast = true }},
	{Name: "first-author", About: "all changes of a batch have the author of its first command", Law: "author, chain",
		set: func(b *Set) { b.Apply.FirstAuthor = true }},
	{Name: "early-clock", About: "a leader reads its clock, and later the revision that it tells with it", Law: "moment",
		set: func(b *Set) { b.EarlyClock = true }},
	{Name: "late-moments", About: "a moment notes the revision that a member had before its batch", Law: "chain, moment",
		set: func(b *Set) { b.Apply.LateMoments = true }},
	{Name: "over-quota", About: "puts are applied that a quota refuses", Law: "quota", With: "--nemesis limits",
		set: func(b *Set) { b.Apply.OverQuota = true }},
	{Name: "evaluate-quota", About: "the fast path answers a put early that a quota may refuse", Law: "fast-path",
		With: "--nemesis limits",
		set:  func(b *Set) { b.Apply.EvaluateQuota = true }},
	{Name: "deleted-counts", About: "deletions do not lower what a quota counts", Law: "quota", With: "--nemesis limits",
		set: func(b *Set) { b.Apply.DeletedCounts = true }},
	{Name: "counts-of-own-size", About: "members count for quotas by steps of their own size", Law: "chain, quota",
		With: "--nemesis limits",
		set:  func(b *Set) { b.OwnCounts = true }},
	{Name: "heads-of-own-number", About: "members keep as many heads of the audit as each of them has memory for",
		Law: "audit, chain", With: "--nemesis audit",
		set: func(b *Set) { b.OwnHeads = true }},
	{Name: "pack-forgets", About: "of the results in a pack only the first counts", Law: "state-machine",
		set: func(b *Set) { b.Apply.PackForgets = true }},
	{Name: "moves-untold", About: "a member that starts at another address does not tell it",
		Law: "address", With: "--nemesis move",
		set: func(b *Set) { b.MovesUntold = true }},
	{Name: "deaf-to-operators", About: "a member does not dial where an operator has said that others are",
		Law: "address", With: "--nemesis move",
		set: func(b *Set) { b.DeafToOperators = true }},
	{Name: "asks-nobody", About: "a member that hears no leader does not ask those that it finds where the leader is",
		Law: "address", With: "--nemesis move",
		set: func(b *Set) { b.AsksNobody = true }},
	{Name: "removed-untold", About: "a removed member that runs again is not told so",
		Law: "address", With: "--nemesis membership,partition,crash,move",
		set: func(b *Set) { b.RemovedUntold = true }},
	{Name: "refused-is-gone",
		About: "who recovers a member takes a refused connection for the operator's word that another one is gone",
		Law:   "recovery", With: "--nemesis move",
		set: func(b *Set) { b.RefusedIsGone = true }},
	{Name: "believe-stamps", About: "an offer waits for its stamp, however far ahead that is", Law: "offer-wait",
		set: func(b *Set) { b.Offers.BelieveStamps = true }},
	{Name: "stay-paused", About: "a member that stopped to offer, because few offers were agreed on, never begins again",
		Law: "offers-resume",
		set: func(b *Set) { b.Offers.StayPaused = true }},
	{Name: "job-twice", About: "a leader takes a job that has ended for one that runs", Law: "job",
		set: func(b *Set) { b.JobTwice = true }},
	{Name: "care-shrinks", About: "automatic care removes a dead voter for which there is no successor", Law: "job",
		set: func(b *Set) { b.Membership.CareShrinks = true }},
	{Name: "job-by-clocks", About: "how long a newcomer may take to start is judged by the clocks of two leaders",
		Law: "job", With: "--nemesis jobs,dates",
		set: func(b *Set) { b.Membership.JobByClocks = true }},
	{Name: "care-by-clocks", About: "the hour of automatic care's budget is judged by the clocks of two leaders",
		Law: "job", With: "--nemesis jobs,dates",
		set: func(b *Set) { b.Membership.CareByClocks = true }},
	{Name: "join-takes-votes", About: "a process that joins may replace a voter that works", Law: "join",
		set: func(b *Set) { b.Membership.JoinTakesVotes = true }},
	{Name: "reset-the-silent", About: "a voter that is only silent is removed to make room for one at its address",
		Law: "reset",
		set: func(b *Set) { b.Membership.ResetTheSilent = true }},
	{Name: "no-sessions", About: "a retried proposal is not recognized", Law: "state-machine",
		set: func(b *Set) { b.Sessions = true }},
	{Name: "early-leases", About: "leases end a second early", Law: "lease-early",
		set: func(b *Set) { b.Leases.Early = time.Second }},
	{Name: "hasty-level", About: "the feature level rises as soon as all members know it, whatever the policy",
		Law:  "state-machine",
		With: "--nemesis upgrade",
		set:  func(b *Set) { b.Apply.Unsoaked, b.HastyLevel = true, true }},
	{Name: "level-stays", About: "members do not see that all of them know a higher feature level", Law: "level",
		set: func(b *Set) { b.LevelStays = true }},
	{Name: "ignore-findings", About: "time counts towards the next feature level while a member finds something wrong",
		Law: "soak", With: "--nemesis upgrade",
		set: func(b *Set) { b.IgnoreFindings = true }},
	{Name: "unheld-downgrade", About: "the level rises by the former policy while members go back to the former release",
		Law: "state-machine", With: "--nemesis upgrade",
		set: func(b *Set) { b.Apply.Unheld = true }},
	{Name: "downgrade-keeps-soak", About: "the time that counted before a downgrade counts after its end",
		Law: "state-machine", With: "--nemesis upgrade",
		set: func(b *Set) { b.Apply.KeepsSoak = true }},
	{Name: "downgrade-stays", About: "a leader does not see that all members have gone back to the former release",
		Law: "downgrade", With: "--nemesis upgrade",
		set: func(b *Set) { b.DowngradeStays = true }},
	{Name: "unstopped-leases", About: "deadlines of leases go on while renewals cannot be served", Law: "lease-renewing",
		With: "--nemesis hung-store",
		set:  func(b *Set) { b.Leases.RunsOn = true }},
	{Name: "parts-of-own-size", About: "members delete as many keys of a lease that ends as each of them has memory for",
		Law: "chain",
		set: func(b *Set) { b.OwnParts = true }},
	{Name: "session-by-id", About: "whoever knows the id of a native client can write in its sessions", Law: "session",
		set: func(b *Set) { b.Streams.Owners.IDInKey = true }},
	{Name: "lost-answers", About: "answers to a native client that do not fit into one message are lost", Law: "client-answer",
		set: func(b *Set) { b.Streams.LosesRest = true }},
	{Name: "kept-turns", About: "a costly command of a native client keeps its turn when it is done", Law: "client-answer",
		set: func(b *Set) { b.Streams.KeepsTurns = true }},
	{Name: "untold-clients", About: "members do not tell the leader which native clients they hear", Law: "client-silent",
		set: func(b *Set) { b.Untold = true }},
	{Name: "kept-silent", About: "sessions of native clients that have gone are not retired", Law: "client-silent",
		set: func(b *Set) { b.KeepsSilent = true }},
	{Name: "stay-at-endpoints", About: "a native client believes the endpoints for ever that it was given", Law: "client-lost",
		set: func(b *Set) { b.Stays = true }},
	{Name: "hasty-client", About: "one voter less decides what a native client offers", Law: "fast-path",
		set: func(b *Set) { b.Client = true }},
	{Name: "apply-unpermitted", About: "what is applied is not checked: only the member that was asked does it",
		Law: "permission",
		set: func(b *Set) { b.Apply.Unpermitted = true }},
	{Name: "evaluate-unpermitted", About: "the fast path answers early what is not permitted", Law: "fast-path",
		set: func(b *Set) { b.Apply.EvaluateUnpermitted = true }},
	{Name: "read-txn-free", About: "who may read is not asked for a transaction that only reads", Law: "permission",
		set: func(b *Set) { b.Users.ReadTxnFree = true }},
	{Name: "ungated", About: "commands are proposed and applied before all members know them",
		Law: "operating-error", With: "--nemesis upgrade",
		set: func(b *Set) { b.Apply.Ungated = true }},
	{Name: "read-early", About: "a read is permitted before it waits, by users that may lag", Law: "permission",
		set: func(b *Set) { b.Users.ReadEarly = true }},
	{Name: "former-passwords", About: "a token of a former password goes on", Law: "permission",
		set: func(b *Set) { b.Users.FormerPasswords = true }},
	{Name: "ship-early-ack", About: "a member calls restorable what the place does not have yet", Law: "backup",
		With: "--nemesis backup",
		set:  func(b *Set) { b.Ships.EarlyAck = true }},
	{Name: "ship-silent-gap", About: "entries that the place did not take in time are left out of a backup without a note",
		Law: "backup", With: "--nemesis backup",
		set: func(b *Set) { b.Ships.SilentGap = true }},
	{Name: "ship-skips", About: "a member that takes over a backup goes on with what it applies now", Law: "backup",
		With: "--nemesis backup",
		set:  func(b *Set) { b.Ships.Skips = true }},
	{Name: "ship-crowds", About: "a member that ships asks for more operations at once than the place does", Law: "backup",
		With: "--nemesis backup",
		set:  func(b *Set) { b.Ships.Crowds = true }},
	{Name: "ship-to-former", About: "entries that are for new recipients are encrypted to the former ones", Law: "backup",
		With: "--nemesis backup",
		set:  func(b *Set) { b.Ships.Former = true }},
	{Name: "keep-less", About: "retention removes what the window of the rule still needs", Law: "backup",
		With: "--nemesis backup",
		set:  func(b *Set) { b.Ships.Forgets = true }},
	{Name: "prune-young-files", About: "retention removes files however new they are", Law: "backup",
		With: "--nemesis backup",
		set:  func(b *Set) { b.Ships.Prune.Young = true }},
	{Name: "prune-named-files", About: "retention removes files that manifests name", Law: "backup",
		With: "--nemesis backup",
		set:  func(b *Set) { b.Ships.Prune.Named = true }},
	{Name: "prune-all-log", About: "retention removes all log before the newest base", Law: "backup",
		With: "--nemesis backup",
		set:  func(b *Set) { b.Ships.Prune.AllLog = true }},
	{Name: "prove-lost", About: "a backup is called proven though its end is gone", Law: "backup", With: "--nemesis backup",
		set: func(b *Set) { b.Proves.Lost = true }},
	{Name: "ship-believes", About: "names of bases that somebody made up count as those of members", Law: "backup",
		With: "--nemesis backup", set: func(b *Set) { b.Ships.Believes = true }},
	{Name: "prove-skips", About: "bases that are no more in a member's list count as compared", Law: "backup",
		With: "--nemesis backup", set: func(b *Set) { b.Surveys.Skips = true }},
	{Name: "prove-apart", About: "bases that are right count as ones of another state", Law: "backup",
		With: "--nemesis backup", set: func(b *Set) { b.Surveys.Apart = true }},
	{Name: "lossy-watch", About: "a watcher loses events", Law: "watch",
		set: func(b *Set) { b.Watch = true }},
}

// All lists the negative controls: the rules of the protocol whose absence the simulator notices, and others.
func All() []Break {
	var all []Break
	for rule := range rules.All(rules.Core | rules.Identity) {
		if text := rule.Text(); text.Law != "" {
			all = append(all, Break{Name: text.Name, About: text.Demands, Law: text.Law, drops: []rules.Rule{rule}})
		}
	}
	return append(all, others...)
}

// Named returns the set of the negative control called name; the empty set for an empty name. The error is ErrUnknown.
func Named(name string) (b Set, err error) {
	if name == "" {
		return b, nil
	}
	var names []string
	for _, k := range All() {
		if k.Name == name {
			k.apply(&b)
			return b, nil
		}
		names = append(names, k.Name)
	}
	return b, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(names, ", "))
}

func (k *Break) apply(b *Set) {
	for _, rule := range k.drops {
		if rule.Text().In&rules.Identity != 0 {
			*identitySwitch(&b.Rules, rule) = true
			continue
		}
		b.Raft[rule] = true
	}
	if k.set != nil {
		k.set(b)
	}
}

// identitySwitch is the switch of a rule: the field whose name, in lower case with hyphens, is that of the rule.
func identitySwitch(switches *identity.Rules, rule rules.Rule) *bool {
	fields := reflect.ValueOf(switches).Elem()
	for i := range fields.NumField() {
		if strings.ToLower(humps.ReplaceAllString(fields.Type().Field(i).Name, "$1-$2")) == rule.String() {
			return fields.Field(i).Addr().Interface().(*bool)
		}
	}
	panic("breaks: package identity has no switch for " + rule.String())
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)
