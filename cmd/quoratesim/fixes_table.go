package main

func byModel(row string) string { return `quoratesim model mutate --quiet --only "` + row + `"` }

func byOperators(row string) string { return `quoratesim operators mutate --only "` + row + `"` }

func byCore(row string) string {
	return `go test ./internal/consensus/raft -count=1 -v -run "Step_exploreOpen/` + row + `"`
}

func bySimulator(nemesis, control string) string {
	return "quoratesim run --for 10m --members 3 --seed 1 --nemesis " + nemesis + " --break " + control
}

// fixes are what the review of November 2026 found in consensus, and in members and their operation, and what finds it now.
func fixes() []fix {
	var all []fix
	for _, part := range [][]fix{readFixes, pathFixes, diskFixes, operatorFixes} {
		all = append(all, part...)
	}
	return all
}

var readFixes = []fix{
	{"a stale linearizable read: a follower served its leader's index once it knew of as many commits, " +
		"which were those of a later term",
		"ReadUnchecked", byModel("log not compared"), "L6"},
	{"the same, in the core", "Faults.ReadLeaderIndex",
		`EXPLORE_SECONDS=600 go test ./internal/consensus/raft -count=1 -v -run "Step_explore$/believed"`, "L6"},
	{"a follower acknowledged entries below its commit index unseen",
		"AppendSkips", byModel("append skips"), "log matching"},
	{"the same, in the core", "Faults.SkipBelowCommit",
		`EXPLORE_SECONDS=600 go test ./internal/consensus/raft -count=1 -v -run "Step_explore$/skipped"`, "one log per leader"},
	{"a recovery from a lost quorum dropped records that lay on the survivor's disk", "RecoveryDrops",
		byModel("adopts no records"), "L1"},
	{"the same with records on the disks that it was compared with", "RecoveryOwnOnly",
		byModel("adopts only the survivor's records"), "L1"},
	{"a leader lease counted on its own settings, where others are less patient", "LeaseOwnPatience",
		byModel("own patience taken for all"), "L6"},
	{"the promise that a lease rests on was forgotten at a restart",
		"LeaseForgotten", byModel("promise forgotten"), "L6"},
}

var pathFixes = []fix{
	{"a record without a session was held for ever", "Faults.Fast.AnswerUnopened", byCore("answer-unopened"), "held"},
	{"one record over all keys closed the fast path", "Faults.Fast.AnyWidth", byCore("any-width"), "open"},
	{"the records of one proposer left no room for others", "Faults.Fast.NoShares", byCore("no-shares"), "room"},
	{"the end of any session met every proposal", "Faults.Fast.SessionsMeetAll", byCore("sessions-meet-all"), "open"},
	{"entries that take no revision made gaps", "Fast.Revises = nil", byCore("what_takes"), "open"},
	{"a proposal was given up as its proposer asked again", "Faults.Fast.HastyOrphans", byCore("hasty-orphans"), "given up"},
}

var diskFixes = []fix{
	{"a member whose disk was empty voted as the one that it had been",
		"IgnoreBinding", byModel("empty disk is the member"), "L1"},
	{"the same, in the simulator", "ignore-binding", bySimulator("wipe", "ignore-binding"), "counted"},
	{"a majority with empty disks founded the cluster once more",
		"FoundByMajority", byModel("founds the cluster once more"),
		"election safety"},
	{"the same, in the simulator", "found-by-majority", bySimulator("wipe-most", "found-by-majority"), "founding"},
	{"processes without data, whose members were replaced after each lost its disk, founded the cluster again among themselves",
		"forget-exclusion", bySimulator("found,wipe", "forget-exclusion"), "founding"},
	{"an old copy of a data directory voted", "IgnoreLives", byModel("old copy of its disk"), "leader completeness"},
	{"the same, in the simulator", "ignore-lives", bySimulator("roll-back", "ignore-lives"), "counted"},
	{"a follower that denied what it had acknowledged stayed in probe for ever and counted", "trust-denial",
		bySimulator("forget", "trust-denial"), "counted"},
	{"a member that was recovered apart made a majority that served stop", "Rules.ObeyNewer",
		`go test ./internal/identity -count=1 -v -run "Succession_walk_majorityServes"`, "of a majority that serves stops"},
	{"former members that came back after a recovery could elect one of themselves", "serve-superseded",
		bySimulator("recover", "serve-superseded"), "superseded"},
	{"two survivors were recovered apart and shared one cluster id",
		"RecoverySameEpoch", byModel("without a new epoch"),
		"leader completeness"},
}

var operatorFixes = []fix{
	{"two peer URLs with a typo were accepted, and nobody led any more",
		"AnyAddress", byOperators("URLs are not checked"), "addresses"},
	{"a voter that answers and never catches up counted, so that a healthy one could be removed", "CountLaggards",
		byOperators("laggards"), "writes go on"},
	{"a plan from before another operator's job was accepted: 3 voters became 1",
		"PlansAreWishes", byOperators("plans do not name"),
		"plan"},
	{"the same dead member was replaced twice: 4 voters", "ReplaceTheGone", byOperators("who is gone"), "voters"},
	{"a newcomer that never starts held its job for ever", "NeverOverdue", byOperators("for ever to start"), "queue"},
	{"and with it all jobs behind it, also the replacement of a dead voter",
		"NobodyPasses", byOperators("no job passes"), "queue"},
	{"two members could bear one name", "AnyName", byOperators("one name"), "names"},
	{"--replaces took the vote of a voter that works", "JoinTakesVotes", byOperators("any vote"), "vote"},
	{"a member at another peer URL was never found again", "NobodyAnnounces", byOperators("that moved"), "addresses"},
}

// unfounds are what no exploration, model or simulation sees missing: only tests of the case itself do.
var unfounds = []unfound{
	{"records that were asked about counted as younger", "it only lasts longer until members agree again",
		[]string{"TestPool_list"}},
	{"the message fields Round, Reject and Hint, and Mark, which is gone, meant different things by kind",
		"there is no rule to drop: the meaning is in the types",
		[]string{"TestReplica_Step_fieldsOfKind", "TestCodec_roundTrip"}},
	{"members that differed at equal index did not notice", "comparing members is itself the checker",
		[]string{"TestMember_compareContents_findsOneBit", "TestMember_compareChains_findsWhatEntriesMeet"}},
	{"a copy of a data directory ran beside its original",
		"the simulator starts copies (clone), and without the rule no law broke in minutes of seeds",
		[]string{"TestGuard_Meet_cloned", "TestCluster_cloned"}},
	{"a host that could not be reached counted as down",
		"a recovery asks for the names of all that are gone, so that what it finds decides nothing by itself; " +
			"dropping the names is noticed (`refused-is-gone`)",
		[]string{"TestFind_unreachable", "TestRecover_noNetwork"}},
	{"one learner that was refused kept the others from being promoted", "the loop around it is no planner",
		[]string{"TestFirstAccepted_goesOn"}},
	{"the file of another cluster was applied",
		"the command line is in no simulation", []string{"TestRun_memberApply_otherCluster"}},
	{"advice that does harm, or misleads", "texts have no checker",
		[]string{"TestRun_panic", "TestRun_memberPeerPort", "TestSameClass_commands", "TestDraft_names"}},
}
