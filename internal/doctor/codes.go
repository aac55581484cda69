package doctor

import "slices"

// Code names a kind of finding. Codes are stable: mutes, alerts and scripts name them.
type Code string

// The codes.
const (
	NoSpace         Code = "NOSPACE"
	CorruptCluster  Code = "CORRUPT_CLUSTER"
	NoQuorum        Code = "NO_QUORUM"
	DiskLost        Code = "DISK_LOST"
	MemberCorrupt   Code = "MEMBER_CORRUPT"
	ForeignProcess  Code = "FOREIGN_PROCESS"
	Superseded      Code = "SUPERSEDED"
	MemberDown      Code = "MEMBER_DOWN"
	MemberHangs     Code = "MEMBER_HANGS"
	DiskHangs       Code = "DISK_HANGS"
	DiskFull        Code = "DISK_FULL"
	DiskSlow        Code = "DISK_SLOW"
	ClockOff        Code = "CLOCK_OFF"
	HotPrefix       Code = "HOT_PREFIX"
	CertExpired     Code = "CERTIFICATE_EXPIRED"
	WrongAuthority  Code = "WRONG_AUTHORITY"
	NameUnresolved  Code = "NAME_UNRESOLVED"
	PeerURLWrong    Code = "PEER_URL_WRONG"
	Unreached       Code = "MEMBER_UNREACHED"
	Partition       Code = "PARTITION"
	LinkDown        Code = "LINK_DOWN"
	LinkOneWay      Code = "LINK_ONE_WAY"
	LinkSlow        Code = "LINK_SLOW"
	ClientURLWrong  Code = "CLIENT_URL_WRONG"
	MemberStalls    Code = "MEMBER_STALLS"
	FilesNear       Code = "DESCRIPTORS_NEAR"
	MemoryOver      Code = "MEMORY_OVER"
	MemoryPartFull  Code = "MEMORY_PART_FULL"
	HeartbeatsLate  Code = "HEARTBEATS_LATE"
	StoreStalls     Code = "STORE_STALLS"
	WatcherUnread   Code = "WATCHER_UNREAD"
	LeaseStorm      Code = "LEASE_STORM"
	ApplyBehind     Code = "APPLY_BEHIND"
	SnapshotRepeats Code = "SNAPSHOT_REPEATED"
	LeaderChanges   Code = "LEADER_CHANGES"
	NoLeader        Code = "NO_LEADER"
	CutOff          Code = "CUT_OFF"
	VoterBehind     Code = "VOTER_BEHIND"
	VoterNotStarted Code = "VOTER_NOT_STARTED"
	LearnerStuck    Code = "LEARNER_STUCK"
	NotStarted      Code = "LEARNER_NOT_STARTED"
	JobStuck        Code = "JOB_STUCK"
	LeasesStood     Code = "LEASES_STOOD"
	LeasesFull      Code = "LEASES_FULL"
	QuotaNear       Code = "QUOTA_NEAR"
	LimitNear       Code = "LIMIT_NEAR"
	LimitRefuses    Code = "LIMIT_REFUSES"
	DiskNear        Code = "DISK_NEAR"
	CertNear        Code = "CERTIFICATE_NEAR"
	TwoVoters       Code = "TWO_VOTERS"
	NoSync          Code = "SYNC_OFF"
	ProposalsFail   Code = "PROPOSALS_FAIL"
	ClientsRefused  Code = "CLIENTS_REFUSED"
	ReclaimFails    Code = "RECLAIM_FAILS"
	BackupBehind    Code = "BACKUP_BEHIND"
	BackupGap       Code = "BACKUP_GAP"
	BackupUnproven  Code = "BACKUP_UNVERIFIED"
	BackupRefused   Code = "BACKUP_PLACE_REFUSED"
	BackupRetention Code = "BACKUP_RETENTION"
	ClustersMixed   Code = "CLUSTERS_MIXED"
	CordonedAll     Code = "CORDONED_ALL"
	ZonesUneven     Code = "ZONES_UNEVEN"
	BuildsMixed     Code = "BUILDS_MIXED"
	LevelHeld       Code = "LEVEL_HELD"
	EvenVoters      Code = "EVEN_VOTERS"
	OneVoter        Code = "ONE_VOTER"
	ValuesHuge      Code = "VALUES_HUGE"
	HistoryKept     Code = "HISTORY_KEPT"
	LogLinesDropped Code = "LOG_LINES_DROPPED"
	AuditBlocked    Code = "AUDIT_BLOCKED"
	AuditDrops      Code = "AUDIT_DROPS"
	KeyUnavailable  Code = "KEY_UNAVAILABLE"
	KeyNotRotated   Code = "KEY_NOT_ROTATED"
	PartlyEncrypted Code = "ENCRYPTION_PARTIAL"
	PeersInClear    Code = "PEERS_IN_CLEAR"
	PeersUncertain  Code = "PEERS_WITHOUT_CERTIFICATES"
	PasswordsClear  Code = "PASSWORDS_IN_CLEAR"
	NotObserved     Code = "NOT_OBSERVED"
)

// Row describes a code.
type Row struct {
	Code Code
	// Impact are the severities that it may have by itself, without effects that it explains.
	Impact string
	// Means says in a sentence when it is found.
	Means string

	explains   []Code // of the same members
	everywhere []Code // of whichever members
}

// Codes is the table of all codes, causes before effects.
func Codes() []Row { return slices.Clone(codes) }

// Known returns the code of a name, if there is one.
func Known(name string) (Code, bool) {
	at := rank(Code(name))
	if at < 0 {
		return "", false
	}
	return codes[at].Code, true
}

// rank is the place of a code in the table.
func rank(code Code) int { return slices.IndexFunc(codes, func(r Row) bool { return r.Code == code }) }

// electing are the effects of members that reach a majority late, or not at all.
var electing = []Code{LeaderChanges, NoLeader, ProposalsFail, LeasesStood}

// unheard are the effects of a member that others do not hear, wherever they show.
var unheard = append([]Code{Unreached, CutOff, VoterBehind, LearnerStuck, JobStuck, LinkDown, LinkOneWay, Partition,
	SnapshotRepeats}, electing...)

// lagging are the effects of a member that is slow at itself.
var lagging = []Code{ApplyBehind, VoterBehind, LearnerStuck, HeartbeatsLate, StoreStalls, SnapshotRepeats, CutOff, LinkSlow,
	MemberStalls}

// Of findings with one severity the one that stands first here is told first. Behind those by which nothing is committed stand
// those whose cures write.
var codes = []Row{
	{CorruptCluster, "1", "Members differ and no majority agrees, so that none serves.", nil,
		append([]Code{MemberCorrupt}, electing...)},
	{NoQuorum, "1", "A majority of the voters is down: nothing can be written.", nil,
		append([]Code{MemberDown, MemberHangs, VoterNotStarted}, unheard...)},
	{DiskLost, "2, 3", "The others refuse a member because its data directory is empty, older, or another one.", unheard,
		append([]Code{MemberDown}, electing...)},
	{MemberCorrupt, "2, 3", "The data of a member differ from those of the majority: it serves nothing.", unheard, nil},
	{ForeignProcess, "3", "A process runs that belongs to another epoch or history of the cluster.", unheard, nil},
	{Superseded, "3", "A member serves nothing because the cluster was recovered without it.", unheard, nil},
	{NameUnresolved, "2, 3", "A host name in the URL of a member does not resolve, at others or where the doctor runs.",
		append([]Code{MemberDown, PeerURLWrong}, unheard...), append([]Code{JobStuck}, electing...)},
	{MemberDown, "2, 3", "A member is down: no process accepts connections, and the leader does not hear it.", unheard,
		append([]Code{JobStuck}, electing...)},
	{MemberHangs, "2, 3",
		"A member accepts connections and does not answer, and the leader has not heard it for an election timeout.", unheard,
		append([]Code{JobStuck}, electing...)},
	{DiskHangs, "1, 2", "A write of the log has not come back for longer than an election timeout.",
		append([]Code{MemberStalls, DiskSlow, MemberHangs}, append(lagging, unheard...)...), electing},
	{DiskFull, "1, 2", "The disk of a member is nearly full: it refuses writes that grow.", []Code{DiskNear, ProposalsFail},
		[]Code{ProposalsFail}},
	{DiskSlow, "3", "Syncs of the log take a large part of an election timeout, or most of a heartbeat interval.",
		append([]Code{LeasesStood}, lagging...), electing},
	{ClockOff, "3", "The clock of a member differs from those of the others by more than an election timeout.",
		[]Code{CertExpired, CertNear, WrongAuthority}, []Code{JobStuck}},
	{HotPrefix, "4", "A member uses half of its processors or more, and half of what it does for clients is for one prefix.",
		[]Code{ApplyBehind, HeartbeatsLate, LinkSlow, StoreStalls, VoterBehind}, electing},
	{CertExpired, "2", "A certificate, an authority or a revocation list has expired.",
		append([]Code{WrongAuthority, CertNear}, unheard...), nil},
	{WrongAuthority, "2, 3", "Members do not take each other's certificates, or the collector not theirs.", unheard,
		electing},
	{PeerURLWrong, "2, 3", "No member reaches another one at its peer URL, though it runs and reaches them.",
		append([]Code{LinkOneWay, LinkDown}, unheard...), electing},
	{Unreached, "2, 3", "A member does not answer the member that collects, nor does the leader hear it: it is down, hangs, " +
		"or is cut off.", unheard, append([]Code{JobStuck}, electing...)},
	{Partition, "2", "The members fall into parts that do not reach each other.", append([]Code{LinkDown}, unheard...),
		electing},
	{LinkDown, "3", "Two members have no connection in either direction, or the one that collects has none to the other, " +
		"while others reach both.", unheard, electing},
	{LinkOneWay, "3", "One member reaches another one, and not the other way round.", unheard, electing},
	{LinkSlow, "3", "The round trip between two members takes more than a tenth of an election timeout.",
		[]Code{VoterBehind, LearnerStuck, SnapshotRepeats}, electing},
	{ClientURLWrong, "3", "Others hear a member that the collector does not reach at its client URL.", nil, nil},
	{MemberStalls, "2", "A part of a member has been at one piece of work for longer than an election timeout.",
		append(lagging, unheard...), electing},
	{AuditBlocked, "2", "A member refuses calls, since a required output takes no records of them.", []Code{AuditDrops},
		[]Code{ProposalsFail}},
	{KeyUnavailable, "2", "A member could not open its encrypted data directory at its next start: its key file, the key " +
		"service or the ring of keys is away, or another one.", []Code{KeyNotRotated}, nil},
	{FilesNear, "2", "A process has four fifths of the files open that it may.", []Code{ClientsRefused}, nil},
	{MemoryOver, "3", "A process has more memory than --memory says.", append([]Code{ClientsRefused}, lagging...), nil},
	{MemoryPartFull, "3", "A part of a member has nine tenths of its share of --memory.",
		[]Code{ClientsRefused, WatcherUnread, ProposalsFail}, nil},
	{HeartbeatsLate, "3", "A leader is late with heartbeats: it has no processor.", []Code{LinkSlow, LeasesStood}, electing},
	{StoreStalls, "3", "Writes wait for the store, which does not keep up with its flushes.",
		[]Code{ApplyBehind, VoterBehind, SnapshotRepeats}, []Code{ProposalsFail}},
	{WatcherUnread, "3", "Clients do not read their watches, and the events that wait fill their share.", nil, nil},
	{LeaseStorm, "3", "Within the window more leases are granted than live, and they are most of what commits.",
		[]Code{ApplyBehind, LeasesFull}, nil},
	{ApplyBehind, "3", "A member applies entries later than an election timeout after they commit.",
		[]Code{VoterBehind, SnapshotRepeats}, nil},
	{SnapshotRepeats, "3", "A member is sent the state again and again, because the log outruns each snapshot.",
		[]Code{LearnerStuck, VoterBehind}, []Code{JobStuck}},
	{LeaderChanges, "3", "The leader changes often.", []Code{CutOff}, []Code{NoLeader, ProposalsFail, LeasesStood}},
	{NoLeader, "1", "A majority answers, and none of them knows a leader.", nil,
		[]Code{CutOff, ProposalsFail, LeasesStood, JobStuck}},
	{CutOff, "2, 3", "A member knows no leader though there is one.", nil, nil},
	{NoSpace, "1", "The alarm NOSPACE stands: no member takes writes that grow.", nil,
		[]Code{QuotaNear, ProposalsFail, HistoryKept}},
	{VoterBehind, "2, 3", "A voter lacks entries that took longer than an election timeout to commit.", nil,
		[]Code{JobStuck}},
	{VoterNotStarted, "2, 3", "A voter has never started.", nil, []Code{JobStuck}},
	{LearnerStuck, "3", "A learner runs, is behind, and gets nothing.", nil, []Code{JobStuck}},
	{NotStarted, "4", "A learner was added and has never started.", nil, []Code{JobStuck}},
	{JobStuck, "3", "A membership job has not moved for sixty election timeouts.", nil, nil},
	{LeasesStood, "3", "The clock of leases stood still for a twentieth of the window.", nil, nil},
	{LeasesFull, "2", "Leases have nine tenths of the memory that a member has for them.", nil, nil},
	{QuotaNear, "2", "The store has nine tenths of its quota.", nil, nil},
	{LimitNear, "3", "The keys of a prefix have nine tenths of the quota of a limit.", nil, nil},
	{LimitRefuses, "4", "A limit of users or prefixes refuses a request a second.", nil, nil},
	{DiskNear, "3", "The disk has less than twice its reserve left.", nil, nil},
	{CertNear, "2, 3, 4", "Less than a hundredth, a twentieth, or a tenth of a certificate's life is left.", nil, nil},
	{TwoVoters, "2", "There are two voters: if either fails nothing can be written.", nil, nil},
	{NoSync, "2", "A member does not sync its log: a power failure loses what it acknowledged.", nil, nil},
	{ProposalsFail, "3", "A twentieth of the writes at a member end without a result.", nil, nil},
	{ClientsRefused, "3", "A member refuses connections or calls beyond its bounds.", nil, nil},
	{ReclaimFails, "3", "A member fails to give back the space of what was compacted.", nil, nil},
	{BackupRefused, "3, 4", "A member may not ship the continuous backup to its place, or no member may.", nil, nil},
	{BackupBehind, "3", "A continuous backup is on, and the last state that can be restored is five minutes old or more, or " +
		"twice `--seal-after` if that is longer.", nil, nil},
	{BackupGap, "3", "Within the last day the continuous backup left entries out: states within the gap cannot be restored.",
		nil, nil},
	{BackupUnproven, "2, 3, 4", "The continuous backup is damaged; or it was not proven for two days (seven where it is " +
		"encrypted: only an operator can prove it then), or twice `--verify-every` if that is longer; or never, a day after " +
		"it was started.", nil, nil},
	{BackupRetention, "3", "Retention removes less from the place of the continuous backup than its rule lets it.", nil, nil},
	{ClustersMixed, "3", "A process of another cluster answers at the endpoint of a member.", nil, nil},
	{CordonedAll, "3", "Every voter is cordoned, so that the cordons say nothing.", nil, nil},
	{ZonesUneven, "3, 4", "The failure of one zone would take a majority of the voters.", nil, nil},
	{BuildsMixed, "4", "Members run different builds.", nil, []Code{LevelHeld}},
	{LevelHeld, "4", "Members know a higher feature level than is active, and one of them does not.", nil, nil},
	{EvenVoters, "4", "An even number of voters survives no more failures than one voter less.", nil, nil},
	{OneVoter, "4", "There is one voter: no failure is survived.", nil, nil},
	{ValuesHuge, "4", "Puts are on average more than a sixteenth of the largest request.", nil, nil},
	{HistoryKept, "4", "Most of the store is versions of the past, and nothing compacts them.", nil, nil},
	{KeyNotRotated, "4", "The keys of a member are wrapped by another key than its key file or key service has as its first " +
		"now.", nil, nil},
	{PartlyEncrypted, "4", "Some members encrypt their data directories, and others do not.", nil, nil},
	{AuditDrops, "3", "An output of a member takes not all records of calls: some are dropped.", nil, nil},
	{LogLinesDropped, "4", "A member drops lines of its log.", nil, nil},
	{PeersInClear, "4", "Members speak with each other unencrypted, on more than their own machine.", nil, nil},
	{PeersUncertain, "4", "The peer port asks for no certificates: any process that reaches it may claim to be a member.",
		nil, nil},
	{PasswordsClear, "4", "Clients log in over connections that are not encrypted.", nil, nil},
	{NotObserved, "4", "A member answers and does not say what it observes: another build, a user without permission, or too " +
		"long an answer.", nil, nil},
}

// ofBuilds are the codes that a build may be the cause of. The others stand for long where there is nothing to fix (two
// voters), are about the machines around (certificates, addresses, clocks), or are made by clients.
var ofBuilds = []Code{
	CorruptCluster, NoQuorum, MemberCorrupt, MemberDown, MemberHangs, Unreached, DiskHangs, DiskFull, DiskSlow, Partition,
	LinkDown, LinkOneWay, MemberStalls, FilesNear, MemoryOver, HeartbeatsLate, StoreStalls, ApplyBehind, SnapshotRepeats,
	LeaderChanges, NoLeader, CutOff, VoterBehind, LearnerStuck, JobStuck, LeasesStood, ReclaimFails,
}

// OfBuild reports whether a finding of a code may have its cause in the build that members run.
func OfBuild(code Code) bool { return slices.Contains(ofBuilds, code) }
