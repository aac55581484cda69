package model

import "time"

// Mutation drops a rule, or several, and says what the design expects of that.
type Mutation struct {
	Name     string
	Set      func(*Rules)
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
	o := WalkOptions{Clusters: mu.Clusters, Profile: mu.Profile, Seed: seed}
	mu.Set(&o.Rules)
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
	f.model.Rules = o.Rules
	f.trace, f.Broken = replay(&f.model, f.trace)
	st := Stats{Walks: 1, Steps: int64(len(f.trace))}
	if f.Broken == "" {
		return nil, st, nil
	}
	return f, st, nil
}

var acceptance = []Mutation{
	{Name: "witness: any term", Set: func(r *Rules) { r.WitnessAnyTerm = true },
		Why: "the proposer compares the terms of the answers"},
	{Name: "proposer: any term", Set: func(r *Rules) { r.ProposerAnyTerm = true }, Breaks: true},
	{Name: "witness and proposer: any term", Set: func(r *Rules) { r.WitnessAnyTerm, r.ProposerAnyTerm = true, true },
		Profile: "old-terms", Breaks: true},
	{Name: "leader: any term", Set: func(r *Rules) { r.LeaderAnyTerm = true }, Why: "the answer bears the leader's term"},
	{Name: "witness: no order against the pool", Set: func(r *Rules) { r.WitnessNoPoolOrder = true }, Breaks: true},
	{Name: "witness: no order against the log", Set: func(r *Rules) { r.WitnessNoLogOrder = true },
		Clusters: []string{"n4"}, Profile: "old-terms", Breaks: true},
	{Name: "witness: no keys against the pool", Set: func(r *Rules) { r.WitnessNoPoolKeys = true }, Breaks: true},
	{Name: "witness: no keys against the log", Set: func(r *Rules) { r.WitnessNoLogKeys = true },
		Clusters: []string{"n4"}, Profile: "old-terms", Breaks: true},
	{Name: "witness: replaces a record", Set: func(r *Rules) { r.WitnessReplaces = true }, Breaks: true},
	{Name: "witness: record not durable", Set: func(r *Rules) { r.WitnessVolatile = true }, Breaks: true},
	{Name: "leader: no order against the log", Set: func(r *Rules) { r.LeaderNoLogOrder = true }, Breaks: true},
	{Name: "leader: no order against the pool", Set: func(r *Rules) { r.LeaderNoPoolOrder = true }, Breaks: true},
	{Name: "leader: no keys against the log", Set: func(r *Rules) { r.LeaderNoLogKeys = true }, Breaks: true},
	{Name: "leader: no keys against the pool", Set: func(r *Rules) { r.LeaderNoPoolKeys = true }, Breaks: true},
	{Name: "leader: no dedup", Set: func(r *Rules) { r.LeaderNoDedup = true }, Breaks: true},
	{Name: "leader: opens before its no-op commits", Set: func(r *Rules) { r.LeaderOpensEarly = true }, Breaks: true},
	{Name: "leader: entry not durable", Set: func(r *Rules) { r.LeaderVolatile = true }, Breaks: true},
	{Name: "leader: evaluates late", Set: func(r *Rules) { r.LeaderEvaluatesLate = true }, Breaks: true},
	{Name: "leader: accepts during a transfer", Set: func(r *Rules) { r.AcceptWhileTransfer = true },
		Why: "only progress: the heir must be able to catch up"},
}

var completion = []Mutation{
	{Name: "proposer: any attempt", Set: func(r *Rules) { r.ProposerAnyAttempt = true }, Breaks: true},
	{Name: "superquorum one lower", Set: func(r *Rules) { r.SuperquorumLess = true }, Breaks: true},
	{Name: "too late: takes the next revision", Set: func(r *Rules) { r.SkipTakesNext = true }, Breaks: true},
	{Name: "too late: applied all the same", Set: func(r *Rules) { r.SkipApplies = true }, Breaks: true},
	{Name: "a skip counts as a result", Set: func(r *Rules) { r.SkipIsResult = true }, Profile: "skipping", Breaks: true},
	{Name: "applied twice", Set: func(r *Rules) { r.ApplyTwice = true }, Breaks: true},
}

var logRules = []Mutation{
	{Name: "append skips below the own commit index", Set: func(r *Rules) { r.AppendSkips = true },
		Clusters: []string{"n5"}, Profile: "foreign-commit", Breaks: true},
	{Name: "inferred commit of an old term", Set: func(r *Rules) { r.InferOldTerm = true }, Breaks: true},
	{Name: "inferred commit during a change", Set: func(r *Rules) { r.InferUnstable = true }, Clusters: anyChange,
		Why: "neighbouring configurations' majorities meet; one-entry joint forms are not modelled"},
	{Name: "inferred commit counts a leader's unwritten tail", Set: func(r *Rules) { r.InferLeaderTail = true },
		Breaks: true},
	{Name: "commit hint without comparing the term", Set: func(r *Rules) { r.HintUnchecked = true }, Breaks: true},
	{Name: "snapshot does not rescue answered entries", Set: func(r *Rules) { r.SnapshotForgets = true },
		Why: "what a snapshot holds has committed, and with it what its leader recovered from the dropped log"},
	{Name: "snapshot without the table of results", Set: func(r *Rules) { r.SnapshotNoTable = true }, Breaks: true},
	{Name: "snapshot of what is not applied", Set: func(r *Rules) { r.SnapshotTooFar = true }, Breaks: true},
	{Name: "records decided by a snapshot are kept", Set: func(r *Rules) { r.SnapshotKeepsAll = true },
		Why: "a record that is held too long costs a conflict, and is decided again"},
}

var forgetting = []Mutation{
	{Name: "forgotten at append", Set: func(r *Rules) { r.ForgetAtAppend = true }, Profile: "churn", Breaks: true},
	{Name: "forgotten by id at a skip", Set: func(r *Rules) { r.ForgetByID = true }, Clusters: []string{"n4", "n5"},
		Profile: "skipping", Breaks: true},
	{Name: "forgotten when reported", Set: func(r *Rules) { r.ForgetAtReport = true }, Breaks: true},
	{Name: "truncation forgets", Set: func(r *Rules) { r.TruncateForgets = true }, Profile: "churn", Breaks: true},
	{Name: "truncation keeps what others answered", Set: func(r *Rules) { r.TruncateKeepsAll = true },
		Why: "holding more than was acknowledged is allowed"},
	{Name: "abort leaves no row", Set: func(r *Rules) { r.AbortNoRow = true }, Breaks: true},
	{Name: "abort before the no-op commits", Set: func(r *Rules) { r.AbortEarly = true },
		Why: "the log holds all that was decided before, and an abort of a lost leader is lost with it"},
	{Name: "abort of what is logged", Set: func(r *Rules) { r.AbortLogged = true },
		Why: "the entry comes first and decides; the abort then changes nothing"},
}

var recoveryRules = []Mutation{
	{Name: "vote lacks own answered entries", Set: func(r *Rules) { r.VoteWithoutLog = true }, Profile: "old-terms",
		Breaks: true},
	{Name: "vote carries nothing", Set: func(r *Rules) { r.VoteWithout = true }, Breaks: true},
	{Name: "vote carries every exact entry", Set: func(r *Rules) { r.VoteCarriesAll = true },
		Why: "holding more than was acknowledged is allowed"},
	{Name: "recovery quorum one higher", Set: func(r *Rules) { r.RecoverMore = true }, Breaks: true},
	{Name: "recovery quorum one lower", Set: func(r *Rules) { r.RecoverLess = true }, Breaks: true},
	{Name: "recovered in descending order", Set: func(r *Rules) { r.RecoverDescending = true }, Breaks: true},
	{Name: "recovered after the no-op", Set: func(r *Rules) { r.RecoverAfterNoop = true },
		Why: "pools keep the records until they are applied, and reads take the last index"},
	{Name: "holders counted by id", Set: func(r *Rules) { r.RecoverByID = true }, Breaks: true},
	{Name: "own log searched by id", Set: func(r *Rules) { r.RecoverLoggedByID = true }, Profile: "skipping", Breaks: true},
}

var idClusters = []string{"4to3", "5to4", "4to5"}

var configRules = []Mutation{
	{Name: "config id: not at the witness", Set: func(r *Rules) { r.WitnessAnyConfig = true }, Clusters: anyChange,
		Why: "the proposer compares the config ids of the answers"},
	{Name: "config id: not at the leader", Set: func(r *Rules) { r.LeaderAnyConfig = true }, Clusters: anyChange,
		Why: "the proposer compares the config ids of the answers"},
	{Name: "config id: not at the proposer", Set: func(r *Rules) { r.ProposerAnyConfig = true }, Clusters: idClusters,
		Profile: "changes", Breaks: true},
	{Name: "config id: only at the witness", Set: func(r *Rules) { r.LeaderAnyConfig, r.ProposerAnyConfig = true, true },
		Clusters: idClusters, Profile: "changes", Breaks: true},
	{Name: "config id: only at the leader", Set: func(r *Rules) { r.WitnessAnyConfig, r.ProposerAnyConfig = true, true },
		Clusters: idClusters, Profile: "changes", Breaks: true},
	{Name: "config id: nowhere", Clusters: anyChange, Breaks: true,
		Set: func(r *Rules) { r.WitnessAnyConfig, r.LeaderAnyConfig, r.ProposerAnyConfig = true, true, true }},
	{Name: "accepts while a change is not applied", Set: func(r *Rules) { r.AcceptWhileChanging = true }, Clusters: anyChange,
		Why: "the config id covers it"},
	{Name: "the same, config id only at the leader", Clusters: anyChange, Breaks: true,
		Set: func(r *Rules) { r.AcceptWhileChanging, r.WitnessAnyConfig, r.ProposerAnyConfig = true, true, true }},
	{Name: "config id counts changes", Set: func(r *Rules) { r.ConfigIDCounts = true }, Clusters: anyChange,
		Why: "nothing is accepted while a change is not applied"},
	{Name: "the same, and accepts while a change is not applied", Profile: "rivals", Breaks: true,
		Clusters: []string{"rollback", "addremove2", "3to2"},
		Set:      func(r *Rules) { r.ConfigIDCounts, r.AcceptWhileChanging = true, true }},
	{Name: "change before the no-op commits", Set: func(r *Rules) { r.ChangeEarly = true }, Clusters: []string{"addremove4"},
		Profile: "rivals", Breaks: true},
	{Name: "two changes at once", Set: func(r *Rules) { r.ChangeTwice = true }, Clusters: anyChange, Profile: "rivals",
		Breaks: true},
	{Name: "learner accepts and is counted", Set: func(r *Rules) { r.WitnessNoVoter, r.ProposerCountsLearners = true, true },
		Clusters: withLearner, Breaks: true},
	{Name: "learner accepts", Set: func(r *Rules) { r.WitnessNoVoter = true }, Clusters: withLearner,
		Why: "it is not counted"},
	{Name: "joint: superquorum of the new set", Clusters: changing3, Breaks: true,
		Set: func(r *Rules) { r.JointDecidesInNew, r.AcceptWhileJoint, r.RecoverAnyConfig = true, true, true }},
	{Name: "joint: election in the new set", Set: func(r *Rules) { r.JointElectsInNew = true }, Clusters: changing3,
		Breaks: true},
	{Name: "joint: accepts", Set: func(r *Rules) { r.AcceptWhileJoint = true }, Clusters: changing3,
		Why: "superquorum and recovery hold in both sets; not so where one entry holds both"},
	{Name: "joint: recovery in either set", Set: func(r *Rules) { r.RecoverInEither, r.AcceptWhileJoint = true, true },
		Clusters: changing3, Why: "what one set alone holds was not decided, and is only executed"},
	{Name: "joint: recovery in the new set", Set: func(r *Rules) { r.RecoverInNew, r.AcceptWhileJoint = true, true },
		Clusters: changing3, Why: "as before"},
	{Name: "records of any config id recovered", Set: func(r *Rules) { r.RecoverAnyConfig = true }, Clusters: anyChange,
		Why: "exact revisions and the closed fast path cover it; not so where one entry holds both sets"},
}

var readRules = []Mutation{
	{Name: "read: commit index", Set: func(r *Rules) { r.ReadCommitIndex = true }, Profile: "reading", Breaks: true},
	{Name: "read: index before it commits", Set: func(r *Rules) { r.ReadUncommitted = true }, Profile: "reading",
		Breaks: true},
	{Name: "read: leader asks nobody", Set: func(r *Rules) { r.ReadUnconfirmed = true }, Profile: "reading", Breaks: true},
	{Name: "read: any asker is an echo", Set: func(r *Rules) { r.ReadAnyAsker = true }, Profile: "reading",
		Why: "a reader asks the leader of its own term, which cannot be in an earlier one"},
	{Name: "read: the reader confirms the leader's index, log not compared", Set: func(r *Rules) { r.ReadUnchecked = true },
		Clusters: []string{"n5"}, Profile: "foreign-commit", Breaks: true},
	{Name: "read: the same, log compared", Set: func(r *Rules) { r.ReadChecked = true },
		Clusters: []string{"n3", "n5"}, Profile: "foreign-commit", Why: "a way that is safe, and not needed"},
	{Name: "read: answers to an earlier question", Set: func(r *Rules) { r.ReadOldAnswers = true }, Profile: "reading",
		Breaks: true},
	{Name: "read: past a pool", Set: func(r *Rules) { r.ReadPastPool = true }, Profile: "reading", Breaks: true},
	{Name: "read: answers under another configuration", Set: func(r *Rules) { r.ReadOtherConfig = true }, Clusters: anyChange,
		Profile: "reading", Why: "neighbouring configurations' majorities meet in these clusters"},
}

var leaseRules = []Mutation{
	{Name: "lease: own patience taken for all", Set: func(r *Rules) { r.LeaseOwnPatience = true },
		Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Name: "lease: holds on after a transfer", Set: func(r *Rules) { r.LeaseNotBarred = true }, Clusters: withLeases,
		Profile: "leasing", Breaks: true},
	{Name: "lease: promise forgotten at a restart", Set: func(r *Rules) { r.LeaseForgotten = true },
		Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Name: "lease: nobody waits", Set: func(r *Rules) { r.LeaseVotesAnyway = true }, Clusters: withLeases,
		Profile: "leasing", Breaks: true},
}

var lossRules = []Mutation{
	{Name: "recovery from loss adopts no records", Set: func(r *Rules) { r.RecoveryDrops = true },
		Clusters: recovering, Breaks: true},
	{Name: "recovery adopts only the survivor's records", Set: func(r *Rules) { r.RecoveryOwnOnly = true },
		Clusters: recovering, Breaks: true},
	{Name: "recovery adopts in descending order", Set: func(r *Rules) { r.RecoveryDescending = true },
		Clusters: recovering, Breaks: true},
	{Name: "recovery without a new epoch", Set: func(r *Rules) { r.RecoverySameEpoch = true }, Clusters: recovering,
		Breaks: true},
}

var diskRules = []Mutation{
	{Name: "a member with an empty disk is the member that it was", Set: func(r *Rules) { r.IgnoreBinding = true },
		Clusters: withDisks, Breaks: true},
	{Name: "a majority with empty disks founds the cluster once more", Set: func(r *Rules) { r.FoundByMajority = true },
		Clusters: withDisks, Breaks: true},
	{Name: "a member with an old copy of its disk is the member that it was", Set: func(r *Rules) { r.IgnoreLives = true },
		Clusters: withDisks, Breaks: true},
}
