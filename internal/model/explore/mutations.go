package explore

import "github.com/quorate/quorate/internal/model"

import "time"

// Mutation drops a rule, or several, and says what the design expects of that.
type Mutation struct {
	Name     string
	Drops    []model.Rule
	Clusters []string // where to walk; nil: clusters that do not change
	Profile  string   // kind of walk; empty: drawn
	Breaks   bool     // a law must break
	Why      string   // if none does: why the rule is redundant
}

// Mutations returns the table of mutations.
func Mutations() []Mutation {
	var all []Mutation
	for _, part := range [][]Mutation{acceptance, completion, logRules, forgetting, recoveryRules, configRules, readRules,
		leaseRules, lossRules, diskRules, payloadRules} {
		all = append(all, part...)
	}
	return all
}

// Options are the walks that look for what the mutation breaks.
func (mu *Mutation) Options(seed uint64) WalkOptions {
	o := WalkOptions{Rules: model.Without(mu.Drops...), Clusters: mu.Clusters, Profile: mu.Profile, Seed: seed}
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
	f.model = model.New(f.model.Scenario, o.Rules)
	f.trace, f.Broken = replay(f.model, f.trace)
	st := Stats{Walks: 1, Steps: int64(len(f.trace))}
	if f.Broken == "" {
		return nil, st, nil
	}
	return f, st, nil
}

var acceptance = []Mutation{
	{Name: "witness: any term", Drops: []model.Rule{model.WitnessAnyTerm},
		Why: "the proposer compares the terms of the answers"},
	{Name: "proposer: any term", Drops: []model.Rule{model.ProposerAnyTerm}, Breaks: true},
	{Name: "witness and proposer: any term", Drops: []model.Rule{model.WitnessAnyTerm, model.ProposerAnyTerm},
		Profile: "old-terms", Breaks: true},
	{Name: "leader: any term", Drops: []model.Rule{model.LeaderAnyTerm}, Why: "the answer bears the leader's term"},
	{Name: "witness: no order against the pool", Drops: []model.Rule{model.WitnessNoPoolOrder}, Breaks: true},
	{Name: "witness: no order against the log", Drops: []model.Rule{model.WitnessNoLogOrder},
		Clusters: []string{"n4"}, Profile: "old-terms", Breaks: true},
	{Name: "witness: no keys against the pool", Drops: []model.Rule{model.WitnessNoPoolKeys}, Breaks: true},
	{Name: "witness: no keys against the log", Drops: []model.Rule{model.WitnessNoLogKeys},
		Clusters: []string{"n4"}, Profile: "old-terms", Breaks: true},
	{Name: "witness: replaces a record", Drops: []model.Rule{model.WitnessReplaces}, Breaks: true},
	{Name: "witness: record not durable", Drops: []model.Rule{model.WitnessVolatile}, Breaks: true},
	{Name: "leader: no order against the log", Drops: []model.Rule{model.LeaderNoLogOrder}, Breaks: true},
	{Name: "leader: no order against the pool", Drops: []model.Rule{model.LeaderNoPoolOrder}, Breaks: true},
	{Name: "leader: no keys against the log", Drops: []model.Rule{model.LeaderNoLogKeys}, Breaks: true},
	{Name: "leader: no keys against the pool", Drops: []model.Rule{model.LeaderNoPoolKeys}, Breaks: true},
	{Name: "leader: no dedup", Drops: []model.Rule{model.LeaderNoDedup}, Breaks: true},
	{Name: "leader: opens before its no-op commits", Drops: []model.Rule{model.LeaderOpensEarly}, Breaks: true},
	{Name: "leader: entry not durable", Drops: []model.Rule{model.LeaderVolatile}, Breaks: true},
	{Name: "leader: evaluates late", Drops: []model.Rule{model.LeaderEvaluatesLate}, Breaks: true},
	{Name: "leader: accepts during a transfer", Drops: []model.Rule{model.AcceptWhileTransfer},
		Why: "only progress: the heir must be able to catch up"},
}

var completion = []Mutation{
	{Name: "proposer: any attempt", Drops: []model.Rule{model.ProposerAnyAttempt}, Breaks: true},
	{Name: "superquorum one lower", Drops: []model.Rule{model.SuperquorumLess}, Breaks: true},
	{Name: "too late: takes the next revision", Drops: []model.Rule{model.SkipTakesNext}, Breaks: true},
	{Name: "too late: applied all the same", Drops: []model.Rule{model.SkipApplies}, Breaks: true},
	{Name: "a skip counts as a result", Drops: []model.Rule{model.SkipIsResult}, Profile: "skipping", Breaks: true},
	{Name: "applied twice", Drops: []model.Rule{model.ApplyTwice}, Breaks: true},
}

var logRules = []Mutation{
	{Name: "append skips below the own commit index", Drops: []model.Rule{model.AppendSkips},
		Clusters: []string{"n5"}, Profile: "foreign-commit", Breaks: true},
	{Name: "inferred commit of an old term", Drops: []model.Rule{model.InferOldTerm}, Breaks: true},
	{Name: "inferred commit during a change", Drops: []model.Rule{model.InferUnstable}, Clusters: anyChange,
		Why: "neighbouring configurations' majorities meet; one-entry joint forms are not modelled"},
	{Name: "inferred commit counts a leader's unwritten tail", Drops: []model.Rule{model.InferLeaderTail},
		Breaks: true},
	{Name: "commit hint without comparing the term", Drops: []model.Rule{model.HintUnchecked}, Breaks: true},
	{Name: "snapshot does not rescue answered entries", Drops: []model.Rule{model.SnapshotForgets},
		Why: "what a snapshot holds has committed, and with it what its leader recovered from the dropped log"},
	{Name: "snapshot without the table of results", Drops: []model.Rule{model.SnapshotNoTable}, Breaks: true},
	{Name: "snapshot of what is not applied", Drops: []model.Rule{model.SnapshotTooFar}, Breaks: true},
	{Name: "records decided by a snapshot are kept", Drops: []model.Rule{model.SnapshotKeepsAll},
		Why: "a record that is held too long costs a conflict, and is decided again"},
}

var forgetting = []Mutation{
	{Name: "forgotten at append", Drops: []model.Rule{model.ForgetAtAppend}, Profile: "churn", Breaks: true},
	{Name: "forgotten by id at a skip", Drops: []model.Rule{model.ForgetByID}, Clusters: []string{"n4", "n5"},
		Profile: "skipping", Breaks: true},
	{Name: "forgotten when reported", Drops: []model.Rule{model.ForgetAtReport}, Breaks: true},
	{Name: "truncation forgets", Drops: []model.Rule{model.TruncateForgets}, Profile: "churn", Breaks: true},
	{Name: "truncation keeps what others answered", Drops: []model.Rule{model.TruncateKeepsAll},
		Why: "holding more than was acknowledged is allowed"},
	{Name: "abort leaves no row", Drops: []model.Rule{model.AbortNoRow}, Breaks: true},
	{Name: "abort before the no-op commits", Drops: []model.Rule{model.AbortEarly},
		Why: "the log holds all that was decided before, and an abort of a lost leader is lost with it"},
	{Name: "abort of what is logged", Drops: []model.Rule{model.AbortLogged},
		Why: "the entry comes first and decides; the abort then changes nothing"},
}

var recoveryRules = []Mutation{
	{Name: "vote lacks own answered entries", Drops: []model.Rule{model.VoteWithoutLog}, Profile: "old-terms",
		Breaks: true},
	{Name: "vote carries nothing", Drops: []model.Rule{model.VoteWithout}, Breaks: true},
	{Name: "vote carries every exact entry", Drops: []model.Rule{model.VoteCarriesAll},
		Why: "holding more than was acknowledged is allowed"},
	{Name: "recovery quorum one higher", Drops: []model.Rule{model.RecoverMore}, Breaks: true},
	{Name: "recovery quorum one lower", Drops: []model.Rule{model.RecoverLess}, Breaks: true},
	{Name: "recovered in descending order", Drops: []model.Rule{model.RecoverDescending}, Breaks: true},
	{Name: "recovered after the no-op", Drops: []model.Rule{model.RecoverAfterNoop}, Profile: "reading", Breaks: true},
	{Name: "holders counted by id", Drops: []model.Rule{model.RecoverByID}, Breaks: true},
	{Name: "own log searched by id", Drops: []model.Rule{model.RecoverLoggedByID}, Profile: "skipping", Breaks: true},
}

var idClusters = []string{"4to3", "5to4", "4to5"}

var configRules = []Mutation{
	{Name: "config id: not at the witness", Drops: []model.Rule{model.WitnessAnyConfig}, Clusters: anyChange,
		Why: "the proposer compares the config ids of the answers"},
	{Name: "config id: not at the leader", Drops: []model.Rule{model.LeaderAnyConfig}, Clusters: anyChange,
		Why: "the proposer compares the config ids of the answers"},
	{Name: "config id: not at the proposer", Drops: []model.Rule{model.ProposerAnyConfig}, Clusters: idClusters,
		Profile: "changes", Breaks: true},
	{Name: "config id: only at the witness", Drops: []model.Rule{model.LeaderAnyConfig, model.ProposerAnyConfig},
		Clusters: idClusters, Profile: "changes", Breaks: true},
	{Name: "config id: only at the leader", Drops: []model.Rule{model.WitnessAnyConfig, model.ProposerAnyConfig},
		Clusters: idClusters, Profile: "changes", Breaks: true},
	{Name: "config id: nowhere", Clusters: anyChange, Breaks: true,
		Drops: []model.Rule{model.WitnessAnyConfig, model.LeaderAnyConfig, model.ProposerAnyConfig}},
	{Name: "accepts while a change is not applied", Drops: []model.Rule{model.AcceptWhileChanging}, Clusters: anyChange,
		Why: "the config id covers it"},
	{Name: "the same, config id only at the leader", Clusters: anyChange, Breaks: true,
		Drops: []model.Rule{model.AcceptWhileChanging, model.WitnessAnyConfig, model.ProposerAnyConfig}},
	{Name: "config id counts changes", Drops: []model.Rule{model.ConfigIDCounts}, Clusters: anyChange,
		Why: "nothing is accepted while a change is not applied"},
	{Name: "the same, and accepts while a change is not applied", Profile: "rivals", Breaks: true,
		Clusters: []string{"rollback", "addremove2", "3to2"},
		Drops:    []model.Rule{model.ConfigIDCounts, model.AcceptWhileChanging}},
	{Name: "change before the no-op commits", Drops: []model.Rule{model.ChangeEarly}, Clusters: []string{"addremove4"},
		Profile: "rivals", Breaks: true},
	{Name: "two changes at once", Drops: []model.Rule{model.ChangeTwice}, Clusters: anyChange, Profile: "rivals",
		Breaks: true},
	{Name: "learner accepts and is counted", Drops: []model.Rule{model.WitnessNoVoter, model.ProposerCountsLearners},
		Clusters: withLearner, Breaks: true},
	{Name: "learner accepts", Drops: []model.Rule{model.WitnessNoVoter}, Clusters: withLearner,
		Why: "it is not counted"},
	{Name: "joint: superquorum of the new set", Clusters: changing3, Breaks: true,
		Drops: []model.Rule{model.JointDecidesInNew, model.AcceptWhileJoint, model.RecoverAnyConfig}},
	{Name: "joint: election in the new set", Drops: []model.Rule{model.JointElectsInNew}, Clusters: changing3,
		Breaks: true},
	{Name: "joint: accepts", Drops: []model.Rule{model.AcceptWhileJoint}, Clusters: changing3,
		Why: "superquorum and recovery hold in both sets; not so where one entry holds both"},
	{Name: "joint: recovery in either set", Drops: []model.Rule{model.RecoverInEither, model.AcceptWhileJoint},
		Clusters: changing3, Why: "what one set alone holds was not decided, and is only executed"},
	{Name: "joint: recovery in the new set", Drops: []model.Rule{model.RecoverInNew, model.AcceptWhileJoint},
		Clusters: changing3, Why: "as before"},
	{Name: "records of any config id recovered", Drops: []model.Rule{model.RecoverAnyConfig}, Clusters: anyChange,
		Why: "exact revisions and the closed fast path cover it; not so where one entry holds both sets"},
}

var readRules = []Mutation{
	{Name: "read: commit index", Drops: []model.Rule{model.ReadCommitIndex}, Profile: "reading", Breaks: true},
	{Name: "read: index without what the leader answered", Drops: []model.Rule{model.ReadForgetsAnswers},
		Profile: "reading", Breaks: true},
	{Name: "read: index below the no-op", Drops: []model.Rule{model.ReadBelowNoop}, Profile: "reading", Breaks: true},
	{Name: "read: index of disks before the read", Drops: []model.Rule{model.ReadOldEnds}, Profile: "reading",
		Breaks: true},
	{Name: "read: index of disks during a change", Drops: []model.Rule{model.ReadWhileChanging}, Clusters: anyChange,
		Profile: "reading", Breaks: true},
	{Name: "read: index before it commits", Drops: []model.Rule{model.ReadUncommitted}, Profile: "reading",
		Breaks: true},
	{Name: "read: leader asks nobody", Drops: []model.Rule{model.ReadUnconfirmed}, Profile: "reading", Breaks: true},
	{Name: "read: any asker is an echo", Drops: []model.Rule{model.ReadAnyAsker}, Profile: "reading",
		Why: "a reader asks the leader of its own term, which cannot be in an earlier one"},
	{Name: "read: the reader confirms the leader's index, log not compared", Drops: []model.Rule{model.ReadUnchecked},
		Clusters: []string{"n5"}, Profile: "foreign-commit", Breaks: true},
	{Name: "read: the same, log compared", Drops: []model.Rule{model.ReadChecked},
		Clusters: []string{"n3", "n5"}, Profile: "foreign-commit", Why: "a way that is safe, and not needed"},
	{Name: "read: answers to an earlier question", Drops: []model.Rule{model.ReadOldAnswers}, Profile: "reading",
		Breaks: true},
	{Name: "read: past a pool", Drops: []model.Rule{model.ReadPastPool}, Profile: "reading", Breaks: true},
	{Name: "read: answers under another configuration", Drops: []model.Rule{model.ReadOtherConfig}, Clusters: anyChange,
		Profile: "reading", Why: "neighbouring configurations' majorities meet in these clusters"},
}

var leaseRules = []Mutation{
	{Name: "lease: own patience taken for all", Drops: []model.Rule{model.LeaseOwnPatience},
		Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Name: "lease: holds on after a transfer", Drops: []model.Rule{model.LeaseNotBarred}, Clusters: withLeases,
		Profile: "leasing", Breaks: true},
	{Name: "lease: promise forgotten at a restart", Drops: []model.Rule{model.LeaseForgotten},
		Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Name: "lease: nobody waits", Drops: []model.Rule{model.LeaseVotesAnyway}, Clusters: withLeases,
		Profile: "leasing", Breaks: true},
}

var lossRules = []Mutation{
	{Name: "recovery from loss adopts no records", Drops: []model.Rule{model.RecoveryDrops},
		Clusters: recovering, Breaks: true},
	{Name: "recovery adopts only the survivor's records", Drops: []model.Rule{model.RecoveryOwnOnly},
		Clusters: recovering, Breaks: true},
	{Name: "recovery adopts in descending order", Drops: []model.Rule{model.RecoveryDescending},
		Clusters: recovering, Breaks: true},
	{Name: "recovery without a new epoch", Drops: []model.Rule{model.RecoverySameEpoch}, Clusters: recovering,
		Breaks: true},
}

var diskRules = []Mutation{
	{Name: "a member with an empty disk is the member that it was", Drops: []model.Rule{model.IgnoreBinding},
		Clusters: withDisks, Breaks: true},
	{Name: "a majority with empty disks founds the cluster once more", Drops: []model.Rule{model.FoundByMajority},
		Clusters: withDisks, Breaks: true},
	{Name: "a member with an old copy of its disk is the member that it was", Drops: []model.Rule{model.IgnoreLives},
		Clusters: withDisks, Breaks: true},
}

var payloadRules = []Mutation{
	{Name: "proposer: any payload", Drops: []model.Rule{model.ProposerAnyPayload}, Clusters: withLiars, Breaks: true},
	{Name: "holders counted whatever their payload", Drops: []model.Rule{model.RecoverAnyPayload}, Clusters: withLiars,
		Breaks: true},
	{Name: "witness: does not look for the proposal in its log", Drops: []model.Rule{model.WitnessNoLogID},
		Clusters: []string{"liar4"}, Breaks: true},
	{Name: "own log searched whatever the payload", Drops: []model.Rule{model.RecoverLoggedAnyPayload}, Clusters: withLiars,
		Why: "who logged one payload recovered it from so many that no superquorum held the other"},
	{Name: "forgotten at a skip whatever the payload", Drops: []model.Rule{model.ForgetAnyPayload}, Clusters: withLiars,
		Why: "the other payload has the revision that came too late, and comes too late, too"},
}
