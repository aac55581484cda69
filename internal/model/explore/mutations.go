package explore

import (
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model"
)

// Mutation drops one or several rules, and states the result that the design expects.
type Mutation struct {
	Drops    []rules.Rule
	Clusters []string // clusters for the walks; nil: clusters that do not change
	Profile  string   // kind of walk; empty: drawn
	Breaks   bool     // the design expects that a law breaks
	Why      string   // if none is expected to: the reason for which the rule is redundant
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

// Dropped returns the name of a mutation: the names of its rules, with commas between them.
func (mu *Mutation) Dropped() string {
	names := make([]string, len(mu.Drops))
	for i, rule := range mu.Drops {
		names[i] = rule.String()
	}
	return strings.Join(names, ", ")
}

// Options are the walks that look for a law that the mutation breaks.
func (mu *Mutation) Options(seed uint64) WalkOptions {
	o := WalkOptions{Rules: rules.Without(mu.Drops...), Clusters: mu.Clusters, Profile: mu.Profile, Seed: seed}
	if o.Clusters == nil {
		o.Clusters = fixedClusters
	}
	return o
}

// Try walks until a law breaks or the time is over. A rule whose absence shows only after four terms, too deep for the walks,
// has a fixed trace.
func (mu *Mutation) Try(seed uint64, limit time.Duration) (*Finding, Stats, error) {
	o := mu.Options(seed)
	o.Time = limit
	script := scripts[mu.Dropped()]
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
	{Drops: []rules.Rule{rules.WitnessAnyTerm}, Why: "the proposer compares the terms of the answers"},
	{Drops: []rules.Rule{rules.ProposerAnyTerm}, Breaks: true},
	{Drops: []rules.Rule{rules.WitnessAnyTerm, rules.ProposerAnyTerm}, Profile: "old-terms", Breaks: true},
	{Drops: []rules.Rule{rules.LeaderAnyTerm}, Why: "the answer bears the leader's term"},
	{Drops: []rules.Rule{rules.WitnessNoPoolOrder}, Breaks: true},
	{Drops: []rules.Rule{rules.WitnessNoLogOrder}, Clusters: []string{"n4"}, Profile: "old-terms", Breaks: true},
	{Drops: []rules.Rule{rules.WitnessNoPoolKeys}, Breaks: true},
	{Drops: []rules.Rule{rules.WitnessNoLogKeys}, Clusters: []string{"n4"}, Profile: "old-terms", Breaks: true},
	{Drops: []rules.Rule{rules.WitnessReplaces}, Breaks: true},
	{Drops: []rules.Rule{rules.WitnessVolatile}, Breaks: true},
	{Drops: []rules.Rule{rules.LeaderNoLogOrder}, Breaks: true},
	{Drops: []rules.Rule{rules.LeaderNoPoolOrder}, Breaks: true},
	{Drops: []rules.Rule{rules.LeaderNoLogKeys}, Breaks: true},
	{Drops: []rules.Rule{rules.LeaderNoPoolKeys}, Breaks: true},
	{Drops: []rules.Rule{rules.LeaderNoDedup}, Breaks: true},
	{Drops: []rules.Rule{rules.LeaderOpensEarly}, Breaks: true},
	{Drops: []rules.Rule{rules.LeaderVolatile}, Breaks: true},
	{Drops: []rules.Rule{rules.LeaderEvaluatesLate}, Breaks: true},
	{Drops: []rules.Rule{rules.AcceptWhileTransfer}, Why: "only progress: the heir must be able to catch up"},
}

var completion = []Mutation{
	{Drops: []rules.Rule{rules.ProposerAnyAttempt}, Breaks: true},
	{Drops: []rules.Rule{rules.SuperquorumLess}, Breaks: true},
	{Drops: []rules.Rule{rules.SkipTakesNext}, Breaks: true},
	{Drops: []rules.Rule{rules.SkipApplies}, Breaks: true},
	{Drops: []rules.Rule{rules.SkipIsResult}, Profile: "skipping", Breaks: true},
	{Drops: []rules.Rule{rules.ApplyTwice}, Breaks: true},
}

var logRules = []Mutation{
	{Drops: []rules.Rule{rules.SkipBelowCommit}, Clusters: []string{"n5"}, Profile: "foreign-commit", Breaks: true},
	{Drops: []rules.Rule{rules.InferOldTerm}, Breaks: true},
	{Drops: []rules.Rule{rules.InferUnstable}, Clusters: anyChange,
		Why: "neighbouring configurations' majorities meet; one-entry joint forms are not modelled"},
	{Drops: []rules.Rule{rules.InferLeaderTail}, Breaks: true},
	{Drops: []rules.Rule{rules.HintUnchecked}, Breaks: true},
	{Drops: []rules.Rule{rules.SnapshotForgets},
		Why: "what a snapshot holds has committed, and with it what its leader recovered from the dropped log"},
	{Drops: []rules.Rule{rules.SnapshotNoTable}, Breaks: true},
	{Drops: []rules.Rule{rules.SnapshotTooFar}, Breaks: true},
	{Drops: []rules.Rule{rules.SnapshotKeepsAll}, Why: "a record that is held too long costs a conflict, and is decided again"},
}

var forgetting = []Mutation{
	{Drops: []rules.Rule{rules.ForgetAtAppend}, Profile: "churn", Breaks: true},
	{Drops: []rules.Rule{rules.ForgetByID}, Clusters: []string{"n4", "n5"}, Profile: "skipping", Breaks: true},
	{Drops: []rules.Rule{rules.ForgetAtReport}, Breaks: true},
	{Drops: []rules.Rule{rules.TruncateForgets}, Profile: "churn", Breaks: true},
	{Drops: []rules.Rule{rules.TruncateKeepsAll}, Why: "holding more than was acknowledged is allowed"},
	{Drops: []rules.Rule{rules.AbortNoRow}, Breaks: true},
	{Drops: []rules.Rule{rules.AbortEarly},
		Why: "the log holds all that was decided before, and an abort of a lost leader is lost with it"},
	{Drops: []rules.Rule{rules.AbortLogged}, Why: "the entry comes first and decides; the abort then changes nothing"},
}

var recoveryRules = []Mutation{
	{Drops: []rules.Rule{rules.VoteWithoutLog}, Profile: "old-terms", Breaks: true},
	{Drops: []rules.Rule{rules.VoteWithout}, Breaks: true},
	{Drops: []rules.Rule{rules.VoteCarriesAll}, Why: "holding more than was acknowledged is allowed"},
	{Drops: []rules.Rule{rules.RecoverMore}, Breaks: true},
	{Drops: []rules.Rule{rules.RecoverLess}, Breaks: true},
	{Drops: []rules.Rule{rules.RecoverDescending}, Breaks: true},
	{Drops: []rules.Rule{rules.RecoverAfterNoop}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.RecoverByID}, Breaks: true},
	{Drops: []rules.Rule{rules.RecoverLoggedByID}, Profile: "skipping", Breaks: true},
}

var idClusters = []string{"4to3", "5to4", "4to5"}

var configRules = []Mutation{
	{Drops: []rules.Rule{rules.WitnessAnyConfig}, Clusters: anyChange,
		Why: "the proposer compares the config ids of the answers"},
	{Drops: []rules.Rule{rules.LeaderAnyConfig}, Clusters: anyChange,
		Why: "the proposer compares the config ids of the answers"},
	{Drops: []rules.Rule{rules.ProposerAnyConfig}, Clusters: idClusters, Profile: "changes", Breaks: true},
	{Drops: []rules.Rule{rules.LeaderAnyConfig, rules.ProposerAnyConfig}, Clusters: idClusters, Profile: "changes",
		Breaks: true},
	{Drops: []rules.Rule{rules.WitnessAnyConfig, rules.ProposerAnyConfig}, Clusters: idClusters, Profile: "changes",
		Breaks: true},
	{Drops: []rules.Rule{rules.WitnessAnyConfig, rules.LeaderAnyConfig, rules.ProposerAnyConfig}, Clusters: anyChange,
		Breaks: true},
	{Drops: []rules.Rule{rules.AcceptWhileChanging}, Clusters: anyChange, Why: "the config id covers it"},
	{Drops: []rules.Rule{rules.AcceptWhileChanging, rules.WitnessAnyConfig, rules.ProposerAnyConfig}, Clusters: anyChange,
		Breaks: true},
	{Drops: []rules.Rule{rules.ReuseConfigIDs}, Clusters: anyChange, Why: "nothing is accepted while a change is not applied"},
	{Drops: []rules.Rule{rules.ReuseConfigIDs, rules.AcceptWhileChanging}, Clusters: []string{"rollback", "addremove2", "3to2"},
		Profile: "rivals", Breaks: true},
	{Drops: []rules.Rule{rules.ChangeInOldTerm}, Clusters: []string{"addremove4"}, Profile: "rivals", Breaks: true},
	{Drops: []rules.Rule{rules.TwoChanges}, Clusters: anyChange, Profile: "rivals", Breaks: true},
	{Drops: []rules.Rule{rules.WitnessNoVoter, rules.ProposerCountsLearners}, Clusters: withLearner, Breaks: true},
	{Drops: []rules.Rule{rules.WitnessNoVoter}, Clusters: withLearner, Why: "it is not counted"},
	{Drops: []rules.Rule{rules.JointDecidesInNew, rules.AcceptWhileJoint, rules.RecoverAnyConfig}, Clusters: changing3,
		Breaks: true},
	{Drops: []rules.Rule{rules.JointElectsInNew}, Clusters: changing3, Breaks: true},
	{Drops: []rules.Rule{rules.AcceptWhileJoint}, Clusters: changing3,
		Why: "superquorum and recovery hold in both sets; not so where one entry holds both"},
	{Drops: []rules.Rule{rules.RecoverInEither, rules.AcceptWhileJoint}, Clusters: changing3,
		Why: "what one set alone holds was not decided, and is only executed"},
	{Drops: []rules.Rule{rules.RecoverInNew, rules.AcceptWhileJoint}, Clusters: changing3, Why: "as before"},
	{Drops: []rules.Rule{rules.RecoverAnyConfig}, Clusters: anyChange,
		Why: "exact revisions and the closed fast path cover it; not so where one entry holds both sets"},
}

var readRules = []Mutation{
	{Drops: []rules.Rule{rules.ReadCommitIndex}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.ReadForgetsAnswers}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.ReadBelowNoop}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.ReadOldEnds}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.ReadWhileChanging}, Clusters: anyChange, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.ReadUncommitted}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.SkipReadRound}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.ReadAnyAsker}, Profile: "reading",
		Why: "a reader asks the leader of its own term, which cannot be in an earlier one"},
	{Drops: []rules.Rule{rules.ReadLeaderIndex}, Clusters: []string{"n5"}, Profile: "foreign-commit", Breaks: true},
	{Drops: []rules.Rule{rules.ReadChecked}, Clusters: []string{"n3", "n5"}, Profile: "foreign-commit",
		Why: "a way that is safe, and not needed"},
	{Drops: []rules.Rule{rules.CountOldAnswers}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.ReadPastPool}, Profile: "reading", Breaks: true},
	{Drops: []rules.Rule{rules.ReadOtherConfig}, Clusters: anyChange, Profile: "reading",
		Why: "neighbouring configurations' majorities meet in these clusters"},
}

var leaseRules = []Mutation{
	{Drops: []rules.Rule{rules.OwnLeaseTicks}, Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Drops: []rules.Rule{rules.LeaseNotBarred}, Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Drops: []rules.Rule{rules.LeaseForgotten}, Clusters: withLeases, Profile: "leasing", Breaks: true},
	{Drops: []rules.Rule{rules.LeaseVotesAnyway}, Clusters: withLeases, Profile: "leasing", Breaks: true},
}

var lossRules = []Mutation{
	{Drops: []rules.Rule{rules.RecoveryDrops}, Clusters: recovering, Breaks: true},
	{Drops: []rules.Rule{rules.RecoveryOwnOnly}, Clusters: recovering, Breaks: true},
	{Drops: []rules.Rule{rules.RecoveryDescending}, Clusters: recovering, Breaks: true},
	{Drops: []rules.Rule{rules.RecoverySameEpoch}, Clusters: recovering, Breaks: true},
}

var diskRules = []Mutation{
	{Drops: []rules.Rule{rules.IgnoreBinding}, Clusters: withDisks, Breaks: true},
	{Drops: []rules.Rule{rules.FoundByMajority}, Clusters: withDisks, Breaks: true},
	{Drops: []rules.Rule{rules.IgnoreLives}, Clusters: withDisks, Breaks: true},
}

var payloadRules = []Mutation{
	{Drops: []rules.Rule{rules.ProposerAnyPayload}, Clusters: withLiars, Breaks: true},
	{Drops: []rules.Rule{rules.RecoverAnyPayload}, Clusters: withLiars, Breaks: true},
	{Drops: []rules.Rule{rules.WitnessNoLogID}, Clusters: []string{"liar4"}, Breaks: true},
	{Drops: []rules.Rule{rules.RecoverLoggedAnyPayload}, Clusters: withLiars,
		Why: "who logged one payload recovered it from so many that no superquorum held the other"},
	{Drops: []rules.Rule{rules.ForgetAnyPayload}, Clusters: withLiars,
		Why: "the other payload has the revision that came too late, and comes too late, too"},
}
