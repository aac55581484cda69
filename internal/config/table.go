package config

import (
	"math"
	"time"

	"github.com/quorate/quorate/internal/base/level"
)

// settings is the whole table, in the order of the help.
var settings = joinGroups()

type group struct {
	title    string
	settings []setting
}

var groups = []group{
	{"Member", memberSettings},
	{"Cluster", clusterSettings},
	{"Automatic repair", careSettings},
	{"Fast path", fastPathSettings},
	{"Limits and tuning", tuningSettings},
	{"Client connections", clientSettings},
	{"Compaction and watch", compactionSettings},
	{"Logging and monitoring", monitoringSettings},
	{"Auth", authSettings},
	{"TLS", tlsSettings},
	{"Encryption at rest", encryptionSettings},
	{"Continuous backup", backupSettings},
	{"Discovery", discoverySettings},
	{"Distributed tracing", tracingSettings},
	{"Audit", auditSettings},
	{"Experimental", experimentalSettings},
	{"Unsafe", unsafeSettings},
	{"Accepted for compatibility, without effect", idleSettings},
}

func joinGroups() []setting {
	var all []setting
	for _, g := range groups {
		all = append(all, g.settings...)
	}
	return all
}

const maxInt = math.MaxInt32

var memberSettings = []setting{
	{name: "name", def: "default", arg: "NAME", help: "Name of this member; unique in the cluster.",
		value: texts(func(c *Config) *string { return &c.Name })},
	{name: "zone", arg: "NAME",
		help:  "What fails together with this member, such as its rack; voters are spread over zones.",
		value: texts(func(c *Config) *string { return &c.Zone })},
	{name: "data-dir", shown: "NAME.etcd", arg: "DIR", help: "Directory of everything this member must not forget.",
		value: texts(func(c *Config) *string { return &c.Storage.DataDir })},
	{name: "wal-dir", shown: "inside data-dir", arg: "DIR",
		help:  "Directory of the write-ahead log, to give it a disk of its own.",
		value: texts(func(c *Config) *string { return &c.Storage.WALDir })},
	{name: "listen-peer-urls", def: "http://localhost:2380", arg: "URLS",
		help:  "Where to listen for other members.",
		value: urls(func(c *Config) *[]URL { return &c.Listen.PeerURLs })},
	{name: "listen-client-urls", def: "http://localhost:2379", arg: "URLS",
		help:  "Where to listen for clients: gRPC, and HTTP unless listen-client-http-urls is set.",
		value: urls(func(c *Config) *[]URL { return &c.Listen.ClientURLs })},
	{name: "listen-client-http-urls", arg: "URLS", shown: "as listen-client-urls",
		help:  "Where to listen for HTTP clients only; the client URLs then serve gRPC alone.",
		value: urls(func(c *Config) *[]URL { return &c.Listen.ClientHTTPURLs })},
	{name: "commit-delay", def: commitDelay.String(), arg: "DURATION",
		help: "How long the leader waits at most, from one batch of writes to the next, for more to commit together. " +
			"It does not wait for clients that wait for it, nor where few write. Longer: fewer syncs and less processor " +
			"time, and writes that take so much longer; at most heartbeat-interval. 0: never.",
		value: durations(func(c *Config) *time.Duration { return &c.Consensus.CommitDelay })},
	{name: "heartbeat-interval", def: "100", arg: "MS",
		help:  "Milliseconds between two heartbeats of the leader; about one round trip between members.",
		value: counted(func(c *Config) *time.Duration { return &c.Consensus.HeartbeatInterval }, time.Millisecond)},
	{name: "election-timeout", def: "1000", arg: "MS",
		help:  "Milliseconds without a leader until a member stands for election; at least 5 heartbeats.",
		value: counted(func(c *Config) *time.Duration { return &c.Consensus.ElectionTimeout }, time.Millisecond)},
	{name: "level-policy", def: "soak=24h", arg: "POLICY",
		help: "When what a new build brings begins to be used, after which the former build cannot return: 'soak=DURATION' " +
			"(once all members have run the new one that long), 'now', or 'hold' (only by quorate upgrade finalize). Read if " +
			"the cluster has no policy yet; see quorate upgrade.",
		value: field[level.Policy]{func(c *Config) *level.Policy { return &c.LevelPolicy }, level.ParsePolicy,
			level.Policy.String, nil}},
	{name: "feature-gates", arg: "GATE=BOOL,…", help: "Switches of features that are not final: " + gateNames() +
		". Those without effect here say so.",
		value: featureGates(func(c *Config) *FeatureGates { return &c.FeatureGates })},
}

var clusterSettings = []setting{
	{name: "initial-advertise-peer-urls", def: "http://localhost:2380", arg: "URLS",
		help:  "Peer URLs of this member as the others reach them.",
		value: urls(func(c *Config) *[]URL { return &c.Advertise.PeerURLs })},
	{name: "advertise-client-urls", def: "http://localhost:2379", arg: "URLS",
		help:  "Client URLs of this member as clients reach them.",
		value: urls(func(c *Config) *[]URL { return &c.Advertise.ClientURLs })},
	{name: "initial-cluster", arg: "NAME=URL,…", shown: "this member alone",
		help: "Members that found the cluster, with their peer URLs. Read at the first start only.",
		value: field[[]InitialMember]{func(c *Config) *[]InitialMember { return &c.Bootstrap.InitialCluster },
			ParseInitialCluster, FormatInitialCluster, nil}},
	{name: "initial-cluster-state", def: "new", arg: "STATE",
		help:  "'new' to found a cluster, 'existing' to join one. Read at the first start only.",
		value: choices(func(c *Config) *ClusterState { return &c.Bootstrap.ClusterState }, ClusterNew, ClusterExisting)},
	{name: "initial-cluster-token", def: "etcd-cluster", arg: "TOKEN",
		help:  "Word that keeps clusters with equal members apart. Read at the first start only.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.ClusterToken })},
	{name: "founding", def: "all", arg: "WHO",
		help: "Who of initial-cluster must have met before a new cluster begins: 'all', or 'majority' as etcd does, where " +
			"two members that lost their disks can found it anew, without what the others hold. Read at the first start only.",
		value: choices(func(c *Config) *Founding { return &c.Bootstrap.Founding }, FoundingAll, FoundingMajority)},
	{name: "join", arg: "URLS",
		help: "Join the cluster of the members at these peer URLs: the first that answers adds this member. Instead of " +
			"initial-cluster; or with it and initial-cluster-state=new, as one line for all members of a set: those that " +
			"initial-cluster names found the cluster, others join it. Read at the first start only.",
		value: urls(func(c *Config) *[]URL { return &c.Bootstrap.Join })},
	{name: "join-learner", def: "false",
		help:  "With join: stay a learner, which receives everything and does not vote. Read at the first start only.",
		value: switches(func(c *Config) *bool { return &c.Bootstrap.JoinLearner })},
	{name: "join-token", arg: "TOKEN", secret: true,
		help: "With join: what `quorate token create` printed. Needed if users must log in to the cluster, and its peer port " +
			"does not ask for certificates. Command lines are seen by other users of a machine: prefer the environment, " +
			"ETCD_JOIN_TOKEN. Read at the first start only.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.JoinToken })},
	{name: "replaces", arg: "MEMBER",
		help: "With join: name or id of the member whose place this one takes; it is removed for ever once this one has " +
			"caught up. Read at the first start only.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.Replaces })},
	{name: "strict-reconfig-check", def: "true",
		help:  "Refuse membership changes that would leave too few started members for a quorum.",
		value: switches(func(c *Config) *bool { return &c.Consensus.StrictReconfigCheck })},
	{name: "pre-vote", def: "true",
		help:  "Ask the others before standing for election, so that a returning member does not disturb them.",
		value: switches(func(c *Config) *bool { return &c.Consensus.PreVote })},
	{name: "max-learners", def: "1", arg: "N",
		help:  "How many learners that stay learners the cluster may have; those on their way to vote do not count.",
		value: numbers(func(c *Config) *int { return &c.Consensus.MaxLearners }, 0, maxInt)},
	{name: "leader-lease", def: "false",
		help: "Let the leader answer reads without asking the others while its lease runs; relies on clocks that " +
			"do not drift apart by more than the lease allows.",
		value: switches(func(c *Config) *bool { return &c.Consensus.LeaderLease })},
}

var tuningSettings = []setting{
	{name: "memory", def: "auto", arg: "SIZE",
		shown: "half of what there is, at most 4GiB",
		help: "Memory of this process: a size such as 512MiB or 4GiB, or a part of what the machine or its control group " +
			"has, such as 50%; 128MiB at least. Caches, write buffers, the log in memory, answers, watches and proposals get " +
			"their parts of it (docs/limits.md).",
		value: field[Memory]{func(c *Config) *Memory { return &c.Limits.Memory }, ParseMemory, Memory.String, nil}},
	{name: "quota-backend-bytes", def: "0", arg: "BYTES",
		help: "Size of the store at which writes stop and an alarm is raised; 0 means no limit, although clients " +
			"are told etcd's 2 GiB; negative means no limit.",
		value: numbers(func(c *Config) *int64 { return &c.Storage.QuotaBytes }, math.MinInt64, math.MaxInt64)},
	{name: "disk-reserve-bytes", def: "268435456", arg: "BYTES",
		help: "Room on the disks of data and log below which this member refuses writes that grow, backups and snapshots, " +
			"until there is more; reads go on. 0 means none is kept, and a full disk stops the member.",
		value: numbers(func(c *Config) *int64 { return &c.Storage.DiskReserveBytes }, 0, math.MaxInt64)},
	{name: "snapshot-send-rate", def: "67108864", arg: "BYTES",
		help: "How much of a snapshot is sent to a member in a second, so that clients do not suffer from one that joins " +
			"or was away for long; 0 means as fast as possible.",
		value: numbers(func(c *Config) *int64 { return &c.Storage.SnapshotSendRate }, 0, math.MaxInt64)},
	{name: "peer-compression", def: "auto", arg: "WHEN",
		help: "When what is sent to another member is compressed: 'always', 'never', or 'auto': while the round trip to it " +
			"is 5 milliseconds or more, as between sites, where bytes cost more than the time that this takes.",
		value: choices(func(c *Config) *PeerCompression { return &c.PeerCompression }, CompressAuto, CompressAlways,
			CompressNever)},
	{name: "snapshot-log-bytes", def: "1073741824", arg: "BYTES",
		help: "Memory for the log that a leader keeps for a member to which it sends a snapshot. If more is written " +
			"meanwhile, the snapshot is given up and a newer one sent. Less if --memory leaves less.",
		value: numbers(func(c *Config) *int { return &c.Storage.SnapshotLogBytes }, 1<<20, maxInt)},
	{name: "bootstrap-defrag-threshold-megabytes", def: "0", arg: "N",
		help: "Defragment after a start if that can free so many megabytes, while clients are served; 0 means never: the " +
			"store gives space back by itself, later.",
		value: numbers(func(c *Config) *int { return &c.Storage.BootDefragMegabytes }, 0, maxInt)},
	{name: "max-txn-ops", def: "128", arg: "N", help: "Operations allowed in one transaction.",
		value: numbers(func(c *Config) *int { return &c.Limits.MaxTxnOps }, 0, maxInt)},
	{name: "max-request-bytes", def: "1572864", arg: "BYTES", help: "Largest request a client may send.",
		value: numbers(func(c *Config) *int { return &c.Limits.MaxRequestBytes }, 1, maxInt)},
	{name: "max-response-bytes", def: "536870912", arg: "BYTES",
		help: "Largest answer to one Range, and what a client that asks for more should page by; a transaction or a " +
			"deletion answers with 64 MiB at most. Less if --memory leaves less.",
		value: numbers(func(c *Config) *int64 { return &c.Limits.MaxResponseBytes }, 1<<20, math.MaxInt32)},
	{name: "response-memory-bytes", def: "1073741824", arg: "BYTES",
		help: "Memory of all answers that are being built and sent, each counted twice until it is encoded; those beyond it " +
			"wait, and are refused after five seconds. Answers to one address have half of it. Less if --memory leaves " +
			"less.",
		value: numbers(func(c *Config) *int64 { return &c.Limits.ResponseMemoryBytes }, 4<<20, math.MaxInt64)},
	{name: "corrupt-check-time", def: "0s", arg: "DURATION",
		help: "Time between two comparisons of all that the members store, for which each one reads its whole store; " +
			"0 means never.",
		value: durations(func(c *Config) *time.Duration { return &c.Storage.CorruptCheckTime })},
	{name: "compact-hash-check-time", def: "1m0s", arg: "DURATION",
		help:  "Time between two comparisons of the members' hashes over all that they applied.",
		value: durations(func(c *Config) *time.Duration { return &c.Storage.CompactHashCheckTime })},
}

var clientSettings = []setting{
	{name: "max-concurrent-streams", def: "10000", arg: "N", help: "Streams one client connection may open.",
		value: numbers(func(c *Config) *uint32 { return &c.Limits.MaxConcurrentStreams }, 0, math.MaxUint32)},
	{name: "grpc-transport", def: "quorate", arg: "NAME",
		help: "What speaks HTTP/2 with clients: 'quorate', which takes least CPU for small calls, or 'grpc-go', the library, " +
			"as a way back.",
		value: choices(func(c *Config) *GRPCTransport { return &c.GRPCTransport }, TransportGRPCGo, TransportOwn)},
	{name: "grpc-keepalive-min-time", def: "5s", arg: "DURATION",
		help:  "Clients that ping more often than this are disconnected.",
		value: durations(func(c *Config) *time.Duration { return &c.Keepalive.MinTime })},
	{name: "grpc-keepalive-interval", def: "2h0m0s", arg: "DURATION",
		help:  "Time between two pings to an idle client; 0 means never.",
		value: durations(func(c *Config) *time.Duration { return &c.Keepalive.Interval })},
	{name: "grpc-keepalive-timeout", def: "20s", arg: "DURATION",
		help:  "Time a pinged client has to answer; 0 means forever.",
		value: durations(func(c *Config) *time.Duration { return &c.Keepalive.Timeout })},
	{name: "socket-reuse-port", def: "false",
		help: "Open all TCP ports with SO_REUSEPORT: another process of the same user that does so, too, may then listen " +
			"on the same port, and gets a part of the new connections until this one stops.",
		value: switches(func(c *Config) *bool { return &c.Listen.ReusePort })},
	{name: "socket-reuse-address", def: "false",
		help: "Open all TCP ports with SO_REUSEADDR, although connections of a former process are in TIME_WAIT. Most " +
			"systems are asked for it anyway.",
		value: switches(func(c *Config) *bool { return &c.Listen.ReuseAddress })},
	{name: "enable-grpc-gateway", def: "true", help: "Serve the API as JSON too, below /v3/ on the ports that serve HTTP.",
		value: switches(func(c *Config) *bool { return &c.HTTP.Gateway })},
	{name: "cors", def: "*", arg: "ORIGINS", help: "Origins that browsers may call from; * means all.",
		value: lists(func(c *Config) *[]string { return &c.HTTP.CORS })},
	{name: "host-whitelist", def: "*", arg: "HOSTS",
		help:  "Host names that HTTP clients may use; * means all.",
		value: lists(func(c *Config) *[]string { return &c.HTTP.HostWhitelist })},
}

var compactionSettings = []setting{
	{name: "auto-compaction-mode", def: "periodic", arg: "MODE",
		help: "Unit of auto-compaction-retention: 'periodic' (time) or 'revision'.",
		value: choices(func(c *Config) *CompactionMode { return &c.Compaction.Mode },
			CompactPeriodic, CompactRevision)},
	{name: "auto-compaction-retention", def: "0", arg: "N",
		help:  "History to keep: a duration or a number of hours, or a number of revisions; 0 means all.",
		value: texts(func(c *Config) *string { return &c.Compaction.Retention })},
	{name: "compaction-batch-limit", def: "1000", arg: "N",
		help:  "Changes looked at in one step of a compaction, 4096 at most.",
		value: numbers(func(c *Config) *int { return &c.Compaction.BatchLimit }, 1, maxInt)},
	{name: "compaction-sleep-interval", def: "10ms", arg: "DURATION",
		help:  "Pause between two steps of a compaction.",
		value: durations(func(c *Config) *time.Duration { return &c.Compaction.SleepInterval })},
	{name: "watch-progress-notify-interval", def: "10m0s", arg: "DURATION",
		help:  "Time between two progress notices to an idle watcher.",
		value: durations(func(c *Config) *time.Duration { return &c.WatchProgressNotifyInterval })},
}
