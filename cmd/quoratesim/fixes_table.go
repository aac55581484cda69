package main

func byModel(row string) string { return "quoratesim model mutate --quiet --only " + row }

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
		"read-leader-index", byModel("read-leader-index"), "L6"},
	{"the same, in the core", "read-leader-index",
		`EXPLORE_SECONDS=600 go test ./internal/consensus/raft -count=1 -v -run "Step_explore$/believed"`, "L6"},
	{"a follower acknowledged entries below its commit index unseen",
		"skip-below-commit", byModel("skip-below-commit"), "log matching"},
	{"the same, in the core", "skip-below-commit",
		`EXPLORE_SECONDS=600 go test ./internal/consensus/raft -count=1 -v -run "Step_explore$/skipped"`, "one log per leader"},
	{"a recovery from a lost quorum dropped records that lay on the survivor's disk", "recovery-drops",
		byModel("recovery-drops"), "L1"},
	{"the same with records on the disks that it was compared with", "recovery-own-only",
		byModel("recovery-own-only"), "L1"},
	{"a leader lease counted on its own settings, where others are less patient", "own-lease-ticks",
		byModel("own-lease-ticks"), "L6"},
	{"the promise that a lease rests on was forgotten at a restart",
		"lease-forgotten", byModel("lease-forgotten"), "L6"},
}

var pathFixes = []fix{
	{"a record without a session was held for ever", "answer-unopened", byCore("answer-unopened"), "held"},
	{"one record over all keys closed the fast path", "any-width", byCore("any-width"), "open"},
	{"the records of one proposer left no room for others", "no-shares", byCore("no-shares"), "room"},
	{"the end of any session met every proposal", "sessions-meet-all", byCore("sessions-meet-all"), "open"},
	{"entries that take no revision made gaps", "Fast.Revises = nil", byCore("what_takes"), "open"},
	{"a proposal was given up as its proposer asked again", "hasty-orphans", byCore("hasty-orphans"), "given up"},
}

var diskFixes = []fix{
	{"a member whose disk was empty voted as the one that it had been",
		"ignore-binding", byModel("ignore-binding"), "L1"},
	{"the same, in the simulator", "ignore-binding", bySimulator("wipe", "ignore-binding"), "counted"},
	{"a majority with empty disks founded the cluster once more",
		"found-by-majority", byModel("found-by-majority"),
		"election safety"},
	{"the same, in the simulator", "found-by-majority", bySimulator("wipe-most", "found-by-majority"), "founding"},
	{"processes without data, whose members were replaced after each lost its disk, founded the cluster again among themselves",
		"forget-exclusion", bySimulator("found,wipe", "forget-exclusion"), "founding"},
	{"an old copy of a data directory voted", "ignore-lives", byModel("ignore-lives"), "leader completeness"},
	{"the same, in the simulator", "ignore-lives", bySimulator("roll-back", "ignore-lives"), "counted"},
	{"a follower that denied what it had acknowledged stayed in probe for ever and counted", "trust-denial",
		bySimulator("forget", "trust-denial"), "counted"},
	{"a member that was recovered apart made a majority that served stop", "obey-newer",
		`go test ./internal/identity -count=1 -v -run "Succession_walk_majorityServes"`, "of a majority that serves stops"},
	{"former members that came back after a recovery could elect one of themselves", "serve-superseded",
		bySimulator("recover", "serve-superseded"), "superseded"},
	{"two survivors were recovered apart and shared one cluster id",
		"recovery-same-epoch", byModel("recovery-same-epoch"),
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
