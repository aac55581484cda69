package main

import (
	"context"
	"slices"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
)

// The figures that workloads measure.
var (
	// closedKinds are those of clients that repeat an operation.
	closedKinds = []figures.Kind{figures.PerSecond, figures.MedianMillis, figures.P99Millis, figures.ServerMicros,
		figures.ClientMicros, figures.ResidentMiB, figures.Failures, figures.OthersPercent}
	// untilKinds are those of writers beside something that takes a while.
	untilKinds = append(slices.Clone(closedKinds), figures.WaitMillis)
	// faultKinds are those of a change or a fault that writes are to survive.
	faultKinds = []figures.Kind{figures.WaitMillis, figures.QuietMillis, figures.Failures}
	// latencyKinds are those of times that are taken one by one.
	latencyKinds = []figures.Kind{figures.PerSecond, figures.Done, figures.MedianMillis, figures.P90Millis, figures.P99Millis,
		figures.MaxMillis}
	// meteredKinds are what members and machine spend.
	meteredKinds = []figures.Kind{figures.ServerMicros, figures.ClientMicros, figures.ResidentMiB, figures.OthersPercent,
		figures.DeviceMiB, figures.DiskMiB}
	limitedKinds = []figures.Kind{figures.Done, figures.Refused, figures.ResidentMiB, figures.AfterMiB}
	narrowKinds  = []figures.Kind{figures.Done, figures.MedianMillis, figures.P99Millis, figures.MaxMillis, figures.Failures,
		figures.LargeFailures, figures.TimesQueue, figures.GapSeconds, figures.QueueSeconds, figures.MustMiB,
		figures.BusiestMiB, figures.SecondMiB, figures.OtherLinksMiB, figures.ArrivedSeconds, figures.QuietSeconds}
)

func kinds(of []figures.Kind, more ...figures.Kind) []figures.Kind { return slices.Concat(of, more) }

// commands is the table of all that can be measured: commands, and the workloads of each.
func commands() []command {
	return []command{
		{name: "run", about: "members under closed loops, faults and changes of members", choose: "workloads",
			chosen: "put,range,txn,mixed,watch", instead: map[string]string{"rounds": "3"}, workloads: runWorkloads},
		{name: "stages", about: "the processor time that each lane of the leader takes for a put", workloads: []workload{
			{"stages", "puts of 256 bytes by more and more clients, while the leader is profiled", stageKinds, stages}}},
		{name: "native", about: "puts of few programs with many under way, by the native client and etcd's",
			instead: map[string]string{"rounds": "3"}, workloads: []workload{
				{"native", "few clients that know all members keep many puts under way", closedKinds, native}}},
		{name: "slow", about: "members of whom some have slow disks", instead: map[string]string{"warmup": "3s"},
			workloads: []workload{{"slow", "writers and readers, which pause between two operations, while syncs take long",
				kinds(latencyKinds, figures.Failures, figures.Elections), slowDisks}}},
		{name: "life", about: "a put until its version is deleted", workloads: []workload{
			{"life", "puts over a fixed set of keys, with compactions, until nothing is left to do",
				kinds(meteredKinds, figures.PerSecond, figures.MedianMillis, figures.P99Millis, figures.MaxMillis,
					figures.DeviceBytes, figures.LowestSecond), life}}},
		{name: "k8s", about: "the load of a Kubernetes control plane, at one rate or the highest one",
			instead: map[string]string{"rounds": "2", "warmup": "5s", "duration": "20s"}, workloads: []workload{
				{"k8s", "mutations, watches, lists and compactions of a control plane, and a check of the watches",
					kinds(slices.Concat(latencyKinds, meteredKinds), figures.Failures, figures.Elections, figures.Cancelled,
						figures.WaitMillis, figures.QuietMillis), kubernetes}}},
		{name: "far", about: "writes and reads between sites", also: arithmetic, workloads: []workload{
			{"far", "one operation after another from each writer, through a follower, the leader, and the native client",
				kinds(latencyKinds, figures.ServerMicros, figures.ClientMicros, figures.OthersPercent, figures.Failures,
					figures.OfferedPercent, figures.WonPercent), between}}},
		{name: "routes", about: "how often the fast path decides between five regions", workloads: []workload{
			{"routes", "writers at some regions at the same time, and what their members count",
				kinds(latencyKinds, figures.Failures, figures.FastPercent, figures.OvertakenPercent, figures.AgreedPercent),
				routes}}},
		{name: "bytes", about: "bytes on the links between five sites", workloads: []workload{
			{"bytes", "puts from sites in turn", kinds(latencyKinds, figures.LinkBytes, figures.LinkBytesBeside,
				figures.BusiestLinkBytes, figures.IdleBytes), siteBytesOf}}},
		{name: "narrow", about: "much over narrow links, and small puts beside it", choose: "scenarios", apart: ";",
			chosen:    "burst 7 MiB;burst 64 MiB;burst 7 MiB, kill the leader;lag 24 MiB;lag 24 MiB, kill the other;snapshot",
			workloads: narrowWorkloads},
		{name: "memory", about: "how much of --memory members take", choose: "workloads", chosen: "put,unread,list,k8s,fill",
			workloads: limitedWorkloads},
		{name: "hold", about: "attacks on what members hold for clients", rules: holdRules, workloads: []workload{
			{"attacks", "an attack on what a member holds for clients or for the peer port, and another client beside it",
				[]figures.Kind{figures.Done, figures.MedianMillis, figures.P99Millis, figures.MaxMillis, figures.WaitMillis,
					figures.ResidentMiB, figures.AfterMiB, figures.GroupMiB, figures.Failures, figures.Renewals,
					figures.Unrenewed, figures.Calls, figures.CallsRefused, figures.OthersPercent}, attacks}}},
		{name: "protocols", about: "membership changes by each protocol", servers: 1, also: changeFlags, workloads: []workload{
			{"changes", "the same changes by each protocol, also while a voter is dead, and puts beside them",
				[]figures.Kind{figures.DecidedMillis, figures.SettledMillis, figures.PauseMillis, figures.MedianMillis,
					figures.P99Millis, figures.Failures}, protocols}}},
		{name: "pictures", about: "pictures of throughput, latency and processor time", also: pictureFlags,
			instead: map[string]string{"rounds": "3", "duration": "1500ms", "warmup": "500ms"}, workloads: []workload{
				{"timeline", "puts that are due at a rate, beside compactions and defragmentations",
					kinds(latencyKinds, figures.Failures), timelines},
				{"profile", "closed loops of puts and ranges while all members are profiled", closedKinds, profiles}}},
		{name: "table", about: "the rows of the table of goals: 25 minutes", servers: 2, also: goalFlags,
			instead: map[string]string{"rounds": "3"}},
	}
}

var runWorkloads = []workload{
	closedLoop("put", "one key, drawn evenly"),
	closedLoop("range", "a linearizable read of one key"),
	closedLoop("txn", "compare a key's revision and set it, on 8 keys of each client's own"),
	closedLoop("mixed", "half puts, half ranges"),
	closedLoop("lease-grant", "grant a lease of an hour"),
	closedLoop("keepalive", "renew one lease of the client's own"),
	closedLoop("keepalive-100", "renew 100 leases at once, on one stream"),
	{"watch", "one client writes a key that many watch, each of whom must be told once, in order", closedKinds, fanOut},
	{"range-1000", "16 clients each range 1,000 keys", closedKinds, lists("range-1000", rangeClients, listPart)},
	{"stream-100000", "4 clients each get 100,000 keys by RangeStream", closedKinds,
		lists("stream-100000", streamClients, streamAll)},
	{"expiry", "leases that end together, before and during", untilKinds, expiries},
	{"memory", "values are written, and all members restarted", untilKinds, memory},
	{"start", "from exec of all members until the last one serves", untilKinds, alone(trial{do: startUp})},
	{"kill-leader", "SIGKILL beside a write every 10 ms", faultKinds, alone(trial{filled: true, do: killLeader})},
	changed("add-voter", "a voter is added and started, beside 16 writers", addVoter),
	changed("remove-leader", "the leader is removed", removeLeader),
	changed("replace-leader", "a learner is added and promoted, and the leader removed", replaceLeader),
	changed("replace-follower", "the same, and a follower removed", replaceFollower),
	{"learner-snapshot", "a learner receives all of a large store, before, during and after", untilKinds, learnerSnapshot},
}

func closedLoop(name, about string) workload {
	return workload{name, about, closedKinds, closedLoops(name)}
}

func changed(name, about string, change func(context.Context, *cluster.Cluster) error) workload {
	return workload{name, about, faultKinds, disturbed(name, change)}
}

var narrowWorkloads = []workload{
	narrowed("burst 7 MiB", "values of 192 KiB through the leader, all at once",
		func(ctx context.Context, r *narrowRun) error { return r.burst(ctx, 7<<20, nil) }),
	narrowed("burst 64 MiB", "the same, 4 MiB at a time",
		func(ctx context.Context, r *narrowRun) error { return r.burst(ctx, 64<<20, nil) }),
	narrowed("burst 7 MiB, kill the leader", "through all members; SIGKILL when half of it should have gone over the links",
		func(ctx context.Context, r *narrowRun) error { return r.burst(ctx, 7<<20, r.leader) }),
	narrowed("lag 24 MiB", "a follower misses 24 MiB, and starts again on narrow links",
		func(ctx context.Context, r *narrowRun) error { return r.lag(ctx, false) }),
	narrowed("lag 24 MiB, kill the other", "when it has a third of that, the other follower is killed",
		func(ctx context.Context, r *narrowRun) error { return r.lag(ctx, true) }),
	narrowed("snapshot", "a follower misses so much that it needs a snapshot",
		func(ctx context.Context, r *narrowRun) error { return r.snapshot(ctx) }),
}

func narrowed(name, about string, run func(ctx context.Context, r *narrowRun) error) workload {
	return workload{name, about, narrowKinds, narrow(name, run)}
}

var limitedWorkloads = []workload{
	bounded("put", "64 clients put", putsWithin),
	bounded("unread", "64 watches of everything that nobody reads, beside 16 writers", unreadWithin),
	bounded("list", "six clients list 40 MB in one answer each", listsWithin),
	bounded("k8s", "500 nodes of Kubernetes, 200 mutations a second", k8sWithin),
	{"fill", "values are written, a hundred in a transaction", limitedKinds, fills},
	bounded("unread-behind", "attack: watches that are never read, behind large values", attackWithin(unreadBehind, nil)),
	bounded("unread-ranges", "attack: watches of many ranges that are never read", attackWithin(unreadRanges, putOne)),
	bounded("delete-all", "attack: large values are deleted at once, and watched", attackWithin(deleteAll, nil)),
	bounded("end-lease", "attack: the same by the end of their lease", attackWithin(endLease, nil)),
	bounded("long-keys", "attack: keys of a MB", attackWithin(longKeys, nil)),
	bounded("long-lease", "attack: 336 MB of keys on one lease", attackWithin(longLease, nil)),
}

func bounded(name, about string, do limitedLoad) workload {
	return workload{name, about, limitedKinds, limited(name, do)}
}
