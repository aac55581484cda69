package model

import "time"

// Mutation drops a rule, or several, and says what the design expects of that.
type Mutation struct {
	Name     string
	Drops    []Rule
	Clusters []string // where to walk; nil: clusters that do not change
	Profile  string   // kind of walk; empty: drawn
	Breaks   bool     // a law must break
	Why      string   // if none does: why the rule is redundant
}

// Mutations returns the table of mutations.
func Mutations() []Mutation {
	var all []Mutation
	for _, part := range [][]Mutation{acceptance, completion, logRules, forgetting, recoveryRules, configRules, readRules,
		leaseRules, lossRules, diskRules} {
		all = append(all, part...)
	}
	return all
}

// Options are the walks that look for what the mutation breaks.
func (mu *Mutation) Options(seed uint64) WalkOptions {
	o := WalkOptions{Rules: Without(mu.Drops...), Clusters: mu.Clusters, Profile: mu.Profile, Seed: seed}
	if o.Clusters == nil {
		o.Clusters = fixedClusters
	}
	return o
}

// Try walks until a law breaks or the time is over. A rule whose absence shows only after four terms, too deep for the
// walks, has a fixed trace.
func (mu *Mutation) Try(seed uint64, limit time.Duration) (*Finding, Stats, error) {
	o := mu.Options(seed)
	o.Time = limit
	script := scripts[mu.Name]
	if script == nil {
		return Walk(o)
	}
	f := script()
	f.model = New(f.model.scenario, o.Rules)
	f.trace, f.Broken = replay(f.model, f.trace)
	st := Stats{Walks: 1, Steps: int64(len(f.trace))}
	if f.Broken == "" {
		return nil, st, nil
	}
	return f, st, nil
}

var acceptance = []Mutation{
	{Name: "witness: any term", Drops: []Rule{WitnessAnyTerm},
		Why: "the proposer compares the terms of the answers"},
	{Name: "proposer: any term", Drops: []Rule{ProposerAnyTerm}, Breaks: true},
	{Name: "witness and proposer: any term", Drops: []Rule{WitnessAnyTerm, ProposerAnyTerm},
		Profile: "old-terms", Breaks: true},
	{Name: "leader: any term", Drops: []Rule{LeaderAnyTerm}, Why: "the answer bears the leader's term"},
	{Name: "witness: no order against the pool", Drops: []Rule{WitnessNoPoolOrder}, Breaks: true},
	{Name: "witness: no order against the log", Drops: []Rule{WitnessNoLogOrder},
		Clusters: []string{"n4"}, Profile: "old-terms", Breaks: true},
	{Name: "witness: no keys against the pool", Drops: []Rule{WitnessNoPoolKeys}, Breaks: true},
	{Name: "witness: no keys against the log", Drops: []Rule{WitnessNoLogKeys},
		Clusters: []string{"n4"}, Profile: "old-terms", Breaks: true},
	{Name: "witness: replaces a record", Drops: []Rule{WitnessReplaces}, Breaks: true},
	{Name: "witness: record not durable", Drops: []Rule{WitnessVolatile}, Breaks: true},
	{Name: "leader: no order against the log", Drops: []Rule{LeaderNoLogOrder}, Breaks: true},
	{Name: "leader: no order against the pool", Drops: []Rule{LeaderNoPoolOrder}, Breaks: true},
	{Name: "leader: no keys against the log", Drops: []Rule{LeaderNoLogKeys}, Breaks: true},
	{Name: "leader: no keys against the pool", Drops: []Rule{LeaderNoPoolKeys}, Breaks: true},
	{Name: "leader: no dedup", Drops: []Rule{LeaderNoDedup}, Breaks: true},
	{Name: "leader: opens before its no-op commits", Drops: []Rule{LeaderOpensEarly}, Breaks: true},
	{Name: "leader: entry not durable", Drops: []Rule{LeaderVolatile}, Breaks: true},
	{Name: "leader: evaluates late", Drops: []Rule{LeaderEvaluatesLate}, Breaks: true},
	{Name: "leader: accepts during a transfer", Drops: []Rule{AcceptWhileTransfer},
		Why: "only progress: the heir must be able to catch up"},
}

var completion = []Mutation{
	{Name: "proposer: any attempt", Drops: []Rule{ProposerAnyAttempt}, Breaks: true},
	{Name: "superquorum one lower", Drops: []Rule{SuperquorumLess}, Breaks: true},
	{Name: "too late: takes the next revision", Drops: []Rule{SkipTakesNext}, Breaks: true},
	{Name: "too late: applied all the same", Drops: []Rule{SkipApplies}, Breaks: true},
	{Name: "a skip counts as a result", Drops: []Rule{SkipIsResult}, Profile: "skipping", Breaks: true},
	{Name: "applied twice", Drops: []Rule{ApplyTwice}, Breaks: true},
}

var logRules = []Mutation{
	{Name: "append skips below the own commit index", Drops: []Rule{AppendSkips},
		Clusters: []string{"n5"}, Profile: "foreign-commit", Breaks: true},
	{Name: "inferred commit of an old term", Drops: []Rule{InferOldTerm}, Breaks: true},
	{Name: "inferred commit during a change", Drops: []Rule{InferUnstable}, Clusters: anyChange,
		Why: "neighbouring configurations' majorities meet; one-entry joint forms are not modelled"},
	{Name: "inferred commit counts a leader's unwritten tail", Drops: []Rule{InferLeaderTail},
		Breaks: true},
	{Name: "commit hint without comparing the term", Drops: []Rule{HintUnchecked}, Breaks: true},
	{Name: "snapshot does not rescue answered entries", Drops: []Rule{SnapshotForgets},
		Why: "what a snapshot holds has committed, and with it what its leader recovered from the dropped log"},
	{Name: "snapshot without the table of results", Drops: []Rule{SnapshotNoTable}, Breaks: true},
	{Name: "snapshot of what is not applied", Drops: []Rule{SnapshotTooFar}, Breaks: true},
	{Name: "records decided by a snapshot are kept", Drops: []Rule{SnapshotKeepsAll},
		Why: "a record that is held too long costs a conflict, and is decided again"},
}

var forgetting = []Mutation{
	{Name: "forgotten at append", Drops: []Rule{ForgetAtAppend}, Profile: "churn", Breaks: true},
	{Name: "forgotten by id at a skip", Drops: []Rule{ForgetByID}, Clusters: []string{"n4", "n5"},
		Profile: "skipping", Breaks: true},
	{Name: "forgotten when reported", Drops: []Rule{ForgetAtReport}, Breaks: true},
	{Name: "truncation forgets", Drops: []Rule{TruncateForgets}, Profile: "churn", Breaks: true},
	{Name: "truncation keeps what others answered", Drops: []Rule{TruncateKeepsAll},
		Why: "holding more than was acknowledged is allowed"},
	{Name: "abort leaves no row", Drops: []Rule{AbortNoRow}, Breaks: true},
	{Name: "abort before the no-op commits", Drops: []Rule{AbortEarly},
		Why: "the log holds all that was decided before, and an abort of a lost leader is lost with it"},
	{Name: "abort of what is logged", Drops: []Rule{AbortLogged},
		Why: "the entry comes first and decides; the abort then changes nothing"},
}

var recoveryRules = []Mutation{
	{Name: "vote lacks own answered entries", Drops: []Rule{VoteWithoutLog}, Profile: "old-terms",
		Breaks: true},
	{Name: "vote carries nothing", Drops: []Rule{VoteWithout}, Breaks: true},
	{Name: "vote carries every exact entry", Drops: []Rule{VoteCarriesAll},
		Why: "holding more than was acknowledged is allowed"},
	{Name: "recovery quorum one higher", Drops: []Rule{RecoverMore}, Breaks: true},
	{Name: "recovery quorum one lower", Drops: []Rule{RecoverLess}, Breaks: true},
	{Name: "recovered in descending order", Drops: []Rule{RecoverDescending}, Breaks: true},
	{Name: "recovered after the no-op", Drops: []Rule{RecoverAfterNoop},
		Why: "pools keep the records until they are applied, and reads take the last index"},
	{Name: "holders counted by id", Drops: []Rule{RecoverByID}, Breaks: true},
	{Name: "own log searched by id", Drops: []Rule{RecoverLoggedByID}, Profile: "skipping", Breaks: true},
}

var idClusters = []string{"4to3", "5to4", "4to5"}

var configRules = []Mutation{
	{Name: "config id: not at the witness", Drops: []Rule{WitnessAnyConfig}, Clusters: anyChange,
		Why: "the proposer compares the config ids of the answers"},
	{Name: "config id: not at the leader", Drops: []Rule{LeaderAnyConfig}, Clusters: anyChange,
		Why: "the proposer compares the config ids of the answers"},
	{Name: "config id: not at the proposer", Drops: []Rule{ProposerAnyConfig}, Clusters: idClusters,
		Profile: "changes", Breaks: true},
	{Name: "config id: only at the witness", Drops: []Rule{LeaderAnyConfig, ProposerAnyConfig},
		Clusters: idClusters, Profile: "changes", Breaks: true},
	{Name: "config id: only at the leader", Drops: []Rule{WitnessAnyConfig, ProposerAnyConfig},
		Clusters: idClusters, Profile: "changes", Breaks: true},
	{Name: "config id: nowhere", Clusters: anyChange, Breaks: true,
		Drops: []Rule{WitnessAnyConfig, LeaderAnyConfig, ProposerAnyConfig}},
	{Name: "accepts while a change is not applied", Drops: []Rule{AcceptWhileChanging}, Clusters: anyChange,
		Why: "the config id covers it"},
	{Name: "the same, config id only at the leader", Clusters: anyChange, Breaks: true,
		Drops: []Rule{AcceptWhileChanging, WitnessAnyConfig, ProposerAnyConfig}},
	{Name: "config id counts changes", Drops: []Rule{ConfigIDCounts}, Clusters: anyChange,
		Why: "nothing is accepted while a change is not applied"},
	{Name: "the same, and accepts while a change is not applied", Profile: "rivals", Breaks: true,
		Clusters: []string{"rollback", "addremove2", "3to2"},
		Drops:    []Rule{ConfigIDCounts, AcceptWhileChanging}},
	{Name: "change before the no-op commits", Drops: []Rule{ChangeEarly}, Clusters: []string{"addremove4"},
		Profile: "rivals", Breaks: true},
	{Name: "two changes at once", Drops: []Rule{ChangeTwice}, Clusters: anyChange, Profile: "rivals",
		Breaks: true},
	{Name: "learner accepts and is counted", Drops: []Rule{WitnessNoVoter, ProposerCountsLearners},
		Clusters: withLearner, Breaks: true},
	{Name: "learner accepts", Drops: []Rule{WitnessNoVoter}, Clusters: withLearner,
		Why: "it is not counted"},
	{Name: "joint: superquorum of the new set", Clusters: changing3, Breaks: true,
		Drops: []Rule{JointDecidesInNew, AcceptWhileJoint, RecoverAnyConfig}},
	{Name: "joint: election in the new set", Drops: []Rule{JointElectsInNew}, Clusters: changing3,
		Breaks: true},
	{Name: "joint: accepts", Drops: []Rule{AcceptWhileJoint}, Clusters: changing3,
		Why: "superquorum and recovery hold in both sets; not so where one entry holds both"},
	{Name: "joint: recovery in either set", Drops: []Rule{RecoverInEither, AcceptWhileJoint},
		Clusters: changing3, Why: "what one set alone holds was not decided, and is only executed"},
	{Name: "joint: recovery in the new set", Drops: []Rule{RecoverInNew, AcceptWhileJoint},
		Clusters: changing3, Why: "as before"},
	{Name: "records of any config id recovered", Drops: []Rule{RecoverAnyConfig}, Clusters: anyChange,
		Why: "exact revisions and the closed fast path cover it; not so where one entry holds both sets"},
}

var readRules = []Mutation{
	{Name: "read: commit index", Drops: []Rule{ReadCommitIndex}, Profile: "reading", Breaks: true},
	{Name: "read: index before it commits", Drops: []Rule{ReadUncommitted}, Profile: "reading",
		Breaks: true},
	{Name: "read: leader asks nobody", Drops: []Rule{ReadUnconfirmed}, Profile: "reading", Breaks: true},
	{Name: "read: any asker is an echo", Drops: []Rule{ReadAnyAsker}, Profile: "reading",
		Why: "a reader asks the leader of its own term, which cannot be in an earlier one"},
	{Name: "read: the reader confirms the leader's index, log not compared", Drops: []Rule{ReadUnchecked},
		Clusters: []string{"n5"}, Profile: "foreign-commit", Breaks: true},
	{Name: "read: the same, log compared", Drops: []Rule{ReadChecked},
		Clusters: []string{"n3", "n5"}, Profile: "foreign-commit", Why: "a way that is safe, and not needed"},
	{Name: "read: answers to an earlier question", Drops: []Rule{ReadOldAnswers}, Profile: "reading",
		Breaks: true},
	{Name: "read: past a pool", Drops: []Rule{ReadPastPool}, Profile: "reading", Breaks: true},
	{Name: "read: answers under another configuration", Drops: []Rule{ReadOtherConfig}, Clusters: anyChange,
		Profile: "reading", Why: "neighbouring configurations' majorities meet in these clusters"},
}

var leaseRules = []Mutation{
	{Name: "lease: own patience taken for all", Drops: []Rule{LeaseOwnPatience},
		Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Name: "lease: holds on after a transfer", Drops: []Rule{LeaseNotBarred}, Clusters: withLeases,
		Profile: "leasing", Breaks: true},
	{Name: "lease: promise forgotten at a restart", Drops: []Rule{LeaseForgotten},
		Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Name: "lease: nobody waits", Drops: []Rule{LeaseVotesAnyway}, Clusters: withLeases,
		Profile: "leasing", Breaks: true},
}

var lossRules = []Mutation{
	{Name: "recovery from loss adopts no records", Drops: []Rule{RecoveryDrops},
		Clusters: recovering, Breaks: true},
	{Name: "recovery adopts only the survivor's records", Drops: []Rule{RecoveryOwnOnly},
		Clusters: recovering, Breaks: true},
	{Name: "recovery adopts in descending order", Drops: []Rule{RecoveryDescending},
		Clusters: recovering, Breaks: true},
	{Name: "recovery without a new epoch", Drops: []Rule{RecoverySameEpoch}, Clusters: recovering,
		Breaks: true},
}

var diskRules = []Mutation{
	{Name: "a member with an empty disk is the member that it was", Drops: []Rule{IgnoreBinding},
		Clusters: withDisks, Breaks: true},
	{Name: "a majority with empty disks founds the cluster once more", Drops: []Rule{FoundByMajority},
		Clusters: withDisks, Breaks: true},
	{Name: "a member with an old copy of its disk is the member that it was", Drops: []Rule{IgnoreLives},
		Clusters: withDisks, Breaks: true},
}
