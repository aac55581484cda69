package doctor_test

import (
	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

var faultsOfMembers = []fault{
	{"a follower is killed", 0, func(h hospital) { h.gone(3, doctor.FaultRefused) }, doctor.MemberDown, 2,
		"m3 is down, for 65 s: m3:2379 says connection refused, and the leader does not hear it", nil},
	{"one of five is killed", 5, func(h hospital) { h.gone(3, doctor.FaultRefused) }, doctor.MemberDown, 3, "m3 is down", nil},
	{"a follower is stopped", 0, func(h hospital) { h.gone(2, doctor.FaultSilent) }, doctor.MemberHangs, 2,
		"m2 hangs, for 65 s: its process accepts connections and does not answer", nil},
	{"two of three are killed", 0, func(h hospital) {
		h.gone(1, doctor.FaultRefused)
		h.gone(2, doctor.FaultRefused)
		h.unled()
	}, doctor.NoQuorum, 1, "2 of 3 voters are down (m1, m2), and 2 must be up: nothing can be written until 1 more runs",
		[]doctor.Code{doctor.NoLeader, doctor.MemberDown}},
	{"the client port of one is closed", 0, func(h hospital) {
		h.Members[1].Observation, h.Members[1].Fault, h.Members[1].FaultText = nil, doctor.FaultUnreachable, "no route to host"
	}, doctor.ClientURLWrong, 3, "m2 is not reached at m2:2379 (no route to host), though other members hear it", nil},
	{"the client port of one says nothing", 0, func(h hospital) {
		h.Members[1].Observation, h.Members[1].Fault, h.Members[1].FaultText = nil, doctor.FaultSilent, "context deadline exceeded"
	}, doctor.ClientURLWrong, 3, "m2:2379 accepts connections and gives no answer (context deadline exceeded), though other members hear m2", nil},
	{"the client port of one is full", 0, func(h hospital) {
		h.Members[1].Observation, h.Members[1].Fault, h.Members[1].FaultText = nil, doctor.FaultClosed, "it closes connections"
	}, doctor.ClientsRefused, 3, "m2:2379 accepts connections and closes them at once: the limit of connections of m2 is reached", nil},
	{"a member behind a proxy is killed", 0, func(h hospital) { h.gone(3, doctor.FaultClosed) }, doctor.MemberDown, 2,
		"m3 is down, for 65 s: m3:2379 accepts connections and closes them: perhaps a proxy with nothing behind it, and the leader " +
			"does not hear it", nil},
	{"one of five behind proxies is killed", 5, func(h hospital) { h.gone(3, doctor.FaultClosed) }, doctor.MemberDown, 3, "m3 is down", nil},
	{"a client URL has an unknown name", 0, func(h hospital) {
		h.Members[1].Observation, h.Members[1].Fault, h.Members[1].FaultText = nil, doctor.FaultUnresolved, "no such host"
	}, doctor.NameUnresolved, 3, "the name in the client URL of m2, m2:2379, does not resolve here (no such host)", nil},
	{"the client port of the leader is closed", 0, func(h hospital) {
		h.Members[0].Observation, h.Members[0].Fault, h.Members[0].FaultText = nil, doctor.FaultRefused, "connection refused"
	}, doctor.ClientURLWrong, 3, "m1 is not reached at m1:2379 (connection refused), though other members hear it", nil},
	{"a disk is lost", 0, func(h hospital) {
		h.gone(3, doctor.FaultRefused)
		h.peer(1, 3).State = "lost its disk"
	}, doctor.DiskLost, 2, "m3 has lost its data, and the others refuse it", nil},
	{"a member is corrupt", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Alarms = []*quoratepb.ObservedAlarm{{Kind: "CORRUPT", Member: 2}} })
		h.of(2).Core.Corrupt = true
	}, doctor.MemberCorrupt, 2, "the data of m2 differ from those of the majority", nil},
	{"the members differ", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Alarms, o.Core.Corrupt = []*quoratepb.ObservedAlarm{{Kind: "CORRUPT"}}, true
		})
	}, doctor.CorruptCluster, 1, "no majority agrees", nil},
	{"the quota is reached", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Alarms = []*quoratepb.ObservedAlarm{{Kind: "NOSPACE", Member: 1}}
			o.Store.SizeBytes = o.Store.QuotaBytes - 1
		})
	}, doctor.NoSpace, 1, "the store of m1 reached its quota, and no member takes writes that grow (2047 MiB of 2048 MiB)",
		[]doctor.Code{doctor.QuotaNear}},
	{"the quota is near", 0, func(h hospital) { h.of(2).Store.SizeBytes = 2 << 30 / 100 * 95 }, doctor.QuotaNear, 2, "the store of m2 has 94 % of its quota", nil},
	{"no member leads", 0, func(h hospital) { h.unled() }, doctor.NoLeader, 1, "no member leads, for 20 s: 3 of 3 voters answer", nil},
	{"a member knows no leader", 0, func(h hospital) { h.of(3).Core.Leader, h.of(3).Core.LeaderlessMs = 0, 20_000 }, doctor.CutOff, 3,
		"m3 has known no leader for 20 s, and m1 leads", nil},
	{"a recovery dropped a member", 0, func(h hospital) { h.of(3).Core.Superseded = "recovered without it" }, doctor.Superseded, 3,
		"m3 serves nothing, because the cluster was recovered without it", nil},
	{"a process of another history", 0, func(h hospital) { h.of(2).Troubles = []string{"a process of another history runs"} },
		doctor.ForeignProcess, 3, "another history", nil},
	{"another build", 0, func(h hospital) {
		h.Members[2].Observation, h.Members[2].Fault = nil, doctor.FaultUnsupported
	}, doctor.NotObserved, 4, "m3 runs a build that does not say what it observes", nil},
	{"a user that may not ask", 0, func(h hospital) {
		h.Members[2].Observation, h.Members[2].Fault, h.Members[2].FaultText = nil, doctor.FaultDenied, "permission denied"
	}, doctor.NotObserved, 4, "permission denied", nil},
	{"an endless answer", 0, func(h hospital) {
		h.Members[2].Observation, h.Members[2].Fault, h.Members[2].FaultText = nil, doctor.FaultLong, "its answer has more than 9 KiB"
	}, doctor.NotObserved, 4, "m3 is judged by the others alone: its answer has more than 9 KiB", nil},
	{"another cluster answers", 0, func(h hospital) {
		h.Members[2].Observation, h.Members[2].Fault, h.Members[2].FaultText = nil, doctor.FaultOther, "it is of cluster 5"
	}, doctor.ClustersMixed, 3, "another process answers at m3:2379, where m3 should: it is of cluster 5", nil},
	{"a voter that never started", 0, func(h hospital) {
		h.gone(3, doctor.FaultNoEndpoint)
		h.known(3, func(m *quoratepb.ObservedMember) { m.Started = false })
	}, doctor.VoterNotStarted, 2, "m3 votes and has never started", nil},
	{"a learner that never started", 4, func(h hospital) {
		h.gone(4, doctor.FaultNoEndpoint)
		h.known(4, func(m *quoratepb.ObservedMember) { m.Started, m.Voter, m.Joining = false, false, true })
	}, doctor.NotStarted, 4, "m4 was added and has never started", nil},
}

var faultsOfLinks = []fault{
	{"one-way", 0, func(h hospital) { h.cut(2, 3, "unreachable") }, doctor.LinkOneWay, 3,
		"m2 does not reach m3 (unreachable, 40 attempts of the window failed), though m3 reaches m2", nil},
	{"a link is down", 0, func(h hospital) {
		h.cut(2, 3, "unreachable")
		h.cut(3, 2, "unreachable")
	}, doctor.LinkDown, 3, "m2 and m3 have no connection (unreachable, 40 attempts of the window failed), while others reach both", nil},
	{"a partition", 5, func(h hospital) {
		for _, a := range []int{1, 2, 3} {
			for _, b := range []int{4, 5} {
				h.cut(a, b, "unreachable")
				h.cut(b, a, "unreachable")
			}
		}
		for _, n := range []int{4, 5} {
			h.of(n).Core.Leader, h.of(n).Core.LeaderlessMs = 0, 9000
			p := h.peer(1, n)
			p.Active, p.SilentMs = false, 9000
		}
	}, doctor.Partition, 2, "m1, m2 and m3 on one side, m4 and m5 on the other", []doctor.Code{doctor.CutOff}},
	{"a slow link", 0, func(h hospital) { h.peer(1, 2).RoundTripUs, h.peer(2, 1).RoundTripUs = 120_000, 118_000 }, doctor.LinkSlow, 3,
		"the link between m1 and m2 is slow: a round trip takes 120 ms, more than a tenth of the election timeout of 1.0 s", nil},
	{"a wrong peer URL", 0, func(h hospital) {
		h.cut(1, 3, "unreachable")
		h.cut(2, 3, "unreachable")
	}, doctor.PeerURLWrong, 3, "no member reaches m3 at its peer URL http://m3:2380, though it runs and reaches others", nil},
	{"a name that no member resolves", 0, func(h hospital) {
		h.cut(1, 3, "unresolved")
		h.cut(2, 3, "unresolved")
	}, doctor.NameUnresolved, 3, "the name in the peer URL of m3, http://m3:2380, does not resolve at m1 and m2: see their DNS",
		[]doctor.Code{doctor.PeerURLWrong}},
	{"a name that one member does not resolve", 0, func(h hospital) { h.cut(2, 3, "unresolved") }, doctor.NameUnresolved, 3,
		"the name in the peer URL of m3, http://m3:2380, does not resolve at m2: see their DNS", []doctor.Code{doctor.LinkOneWay}},
	{"a name that went with its process", 0, func(h hospital) {
		h.gone(3, doctor.FaultUnresolved)
		h.peer(1, 3).Fault, h.peer(2, 3).Fault = "unresolved", "unresolved"
	}, doctor.NameUnresolved, 2, "does not resolve at m1 and m2, nor does that of m3:2379 here", []doctor.Code{doctor.MemberDown}},
	{"an update to a wrong URL", 0, func(h hospital) { h.known(3, func(m *quoratepb.ObservedMember) { m.Moved = true }) },
		doctor.PeerURLWrong, 3, "m3 was not found at its new peer URL http://m3:2380", nil},
	{"another member at a URL", 0, func(h hospital) {
		h.cut(1, 3, "wrong-member")
		h.cut(2, 3, "wrong-member")
	}, doctor.PeerURLWrong, 3, "m3", nil},
	{"wrong authority between members", 0, func(h hospital) {
		for _, n := range []int{1, 2} {
			h.cut(n, 3, "untrusted")
			h.cut(3, n, "untrusted")
		}
		h.peer(1, 3).Active = false
		h.of(3).Core.Leader, h.of(3).Core.LeaderlessMs = 0, 9000
	}, doctor.WrongAuthority, 2, "m1 and m3 do not take each other's certificates", []doctor.Code{doctor.Partition, doctor.CutOff}},
	{"wrong authority of the collector", 0, func(h hospital) {
		h.Members[1].Observation, h.Members[1].Fault, h.Members[1].FaultText = nil, doctor.FaultAuthority, "unknown authority"
	}, doctor.WrongAuthority, 3, "the certificate of m2 is not taken here: unknown authority", nil},
	{"a certificate of a year has 3 days left", 0, func(h hospital) {
		c := h.of(2).Certificates[0]
		c.UntilMs, c.FromMs = h.of(2).NowMs+3*day, h.of(2).NowMs-362*day
	}, doctor.CertNear, 2, "the certificate of m2 for peers expires in 3 days, of 365 days", nil},
	{"a certificate of a year has a month left", 0, func(h hospital) {
		c := h.of(2).Certificates[0]
		c.UntilMs, c.FromMs = h.of(2).NowMs+30*day, h.of(2).NowMs-335*day
	}, doctor.CertNear, 4, "expires in 30 days", nil},
	{"a revocation list has expired", 0, func(h hospital) {
		c := h.of(2).Certificates[0]
		c.UntilMs, c.FromMs, c.What = h.of(2).NowMs-3*3600_000, 0, "revocation-list"
	}, doctor.CertExpired, 2, "the revocation list of m2 for peers expired 3 hours ago", nil},
	{"a clock is off", 0, func(h hospital) { h.of(2).NowMs += 10_000 }, doctor.ClockOff, 3, "the clock of m2 is 10.0 s ahead of those of the others", nil},
	{"a clock is late", 0, func(h hospital) { h.of(3).NowMs -= 5_000 }, doctor.ClockOff, 3, "the clock of m3 is 5.0 s behind those of the others", nil},
}

var faultsOfMachines = []fault{
	{"a slow disk", 0, func(h hospital) {
		h.of(1).Disk.SyncP99Us, h.of(1).Disk.SyncMeanUs, h.of(1).Work.WriteMeanUs = 700_000, 150_000, 160_000
		h.of(1).Core.LeaderChanges = 9
	}, doctor.DiskSlow, 3,
		"the disk of m1 is slow: one sync of its log in a hundred takes 700 ms, of an election timeout of 1.0 s, and 150 ms on average of the 160 ms",
		[]doctor.Code{doctor.LeaderChanges}},
	{"a slow disk of a follower", 0, func(h hospital) {
		h.of(3).Disk.SyncP99Us, h.of(3).Disk.SyncMeanUs = 90_000, 85_000
		p := h.peer(1, 3)
		p.CaughtUp, p.Match = false, 88_000
	}, doctor.DiskSlow, 2, "the disk of m3 is slow", []doctor.Code{doctor.VoterBehind}},
	{"a disk hangs", 0, func(h hospital) {
		h.of(2).Core.Stalled, h.of(2).Core.StalledMs = "writing the log has made no progress for 4s", 4000
	}, doctor.DiskHangs, 2, "the disk of m2 hangs: a write of its log has not come back for more than 4.0 s", nil},
	{"the leader's disk hangs", 0, func(h hospital) {
		h.of(1).Core.Stalled, h.of(1).Core.StalledMs = "writing the log has made no progress for 4s", 4000
	}, doctor.DiskHangs, 1, "the disk of m1 hangs", nil},
	{"the state machine hangs", 0, func(h hospital) { h.of(2).Core.Stalled, h.of(2).Core.StalledMs = "applying entries", 4000 },
		doctor.MemberStalls, 2, "m2 makes no progress for more than 4.0 s: applying entries", nil},
	{"a full disk", 0, func(h hospital) { h.of(2).Disk.Low, h.of(2).Disk.AvailableBytes = true, 100<<20 }, doctor.DiskFull, 2,
		"the disk of m2 is nearly full (100 MiB free, reserve 256 MiB)", nil},
	{"all disks are full", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Disk.Low, o.Disk.AvailableBytes = true, 100<<20 })
	}, doctor.DiskFull, 1, "the disk of m1 is nearly full (100 MiB free, reserve 256 MiB)", nil},
	{"a disk is filling", 0, func(h hospital) { h.of(2).Disk.AvailableBytes = 400 << 20 }, doctor.DiskNear, 3, "the disk of m2 has 400 MiB left", nil},
	{"no syncs", 0, func(h hospital) { h.of(2).Disk.UnsafeNoSync = true }, doctor.NoSync, 2, "m2 does not sync its log", nil},
	{"a store that does not keep up", 0, func(h hospital) {
		h.of(2).Store.Stalls = 3
		h.of(2).Core.Applied = 60_000
	}, doctor.StoreStalls, 3, "the store of m2 does not keep up: writes waited for it 3 times", []doctor.Code{doctor.ApplyBehind}},
	{"a reclaim that fails", 0, func(h hospital) { h.of(2).Store.ReclaimFailures = 4 }, doctor.ReclaimFails, 3, "m2 failed 4 times to give back the space", nil},
	{"a backup that is late", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.RestorableMs, o.Backup.Trouble = 600_000, "full"
		})
	}, doctor.BackupBehind, 3, "nothing of the last 10 minutes can be restored; the place takes nothing: full", nil},
	{"a backup that is later than its entries are sealed", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.RestorableMs, o.Backup.SealMs = 7200_000, 3600_000
		})
	}, doctor.BackupBehind, 3, "nothing of the last 2 hours can be restored; the member that ships does not keep up", nil},
	{"a backup that nobody ships", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Backup = &quoratepb.ObservedBackup{On: true, SinceMs: 600_000} })
	}, doctor.BackupBehind, 3, "nothing can be restored yet, 10 minutes after it was started; no member is appointed", nil},
	{"a backup that one member may not ship", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Backup = backup() })
		h.of(3).Backup = backup()
		h.of(3).Backup.Refused = "this member may not use the place: its --backup-places is not set"
	}, doctor.BackupRefused, 4, "m3 may not ship the backup, and cannot go on with it where the others are away: of m3, this member", nil},
	{"a backup that no member may ship", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.Refused = "this member may not use the place"
		})
	}, doctor.BackupRefused, 3, "no member that answers may ship the backup: of m1, this member may not use the place", nil},
	{"a backup with a gap", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Backup = backup(); o.Backup.GapMs, o.Backup.Gaps = 600_000, 2 })
	}, doctor.BackupGap, 3, "the backup has a gap, noted 10 minutes ago: states within cannot be restored, all others can. The place took nothing " +
		"for longer than the log was kept, or the backup was stopped or went elsewhere", nil},
	{"a backup that was not proven", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Backup = backup(); o.Backup.ProvenMs = 3 * 24 * 3600_000 })
	}, doctor.BackupUnproven, 3, "no restore of the backup was proven for 3 days", nil},
	{"a backup that was never proven", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.SinceMs, o.Backup.VerifiedMs, o.Backup.ProvenMs, o.Backup.Proven = 25*3600_000, 3600_000, 0, false
			o.Backup.Why = "the place cannot be reached"
		})
	}, doctor.BackupUnproven, 3, "ever proven, 25 hours after it was started: the last try, 60 minutes ago, did not get that far: the place", nil},
	{"a backup that members do not prove", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.VerifySeconds, o.Backup.ProvenMs = 0, 3*24*3600_000
		})
	}, doctor.BackupUnproven, 4, "members do not try (--verify-every 0)", nil},
	{"an encrypted backup that no operator has proven for long", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.Recipients, o.Backup.ProvenMs = 2, 8*24*3600_000
		})
	}, doctor.BackupUnproven, 3, "proven for 8 days: members cannot prove an encrypted backup; only an operator can", nil},
	{"an encrypted backup that was never proven", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.Recipients, o.Backup.VerifiedMs, o.Backup.ProvenMs, o.Backup.Proven = 1, 0, 0, false
		})
	}, doctor.BackupUnproven, 4, "ever proven, 30 days after it was started: members cannot prove an encrypted backup", nil},
	{"a backup with an object that others replace", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.Damaged, o.Backup.Why = 1, "object obj/aa: missing"
		})
	}, doctor.BackupUnproven, 3, "without objects that are damaged or gone (1): object obj/aa: missing", nil},
	{"a backup of which a part was not proven", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Backup = backup(); o.Backup.Why = "2 bases not compared" })
	}, doctor.BackupUnproven, 4, "the newest state of the backup was proven 60 minutes ago, and not all of it: 2 bases", nil},
	{"a backup that cannot be restored", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Backup = backup()
			o.Backup.Proven, o.Backup.Failed, o.Backup.Why = false, true, "object obj/aa: damaged"
		})
	}, doctor.BackupUnproven, 2, "the backup cannot be restored as it is: object obj/aa: damaged (tried 60 minutes ago)", nil},
	{"a backup that grows", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Backup = backup(); o.Backup.RetentionWhy = "delete obj/aa: denied" })
	}, doctor.BackupRetention, 3, "retention does not remove what the rule does not keep: delete obj/aa: denied", nil},
	{"late applies", 0, func(h hospital) { h.of(3).Core.Applied = 80_000 }, doctor.ApplyBehind, 3,
		"m3 applies late: 10000 entries wait, which took 100 s to commit", nil},
	{"open files", 0, func(h hospital) { h.of(2).Process.OpenFiles = 60_000 }, doctor.FilesNear, 2, "m2 has 60000 of 65536 files open", nil},
	{"too much memory", 0, func(h hospital) { h.of(2).Process.MemoryBytes = 5 << 30 }, doctor.MemoryOver, 3,
		"m2 has 5120 MiB of memory, and 4096 MiB by --memory", nil},
	{"a part is full", 0, func(h hospital) { h.of(2).Process.Parts[0].Bytes = 250 << 20 }, doctor.MemoryPartFull, 3,
		"m2 has 250 MiB of the 256 MiB that it may have for watches", nil},
	{"late heartbeats", 0, func(h hospital) { h.of(1).Core.LateHeartbeats = 50 }, doctor.HeartbeatsLate, 3,
		"m1 leads and was late with 50 of about 600 heartbeats", nil},
	{"a hot prefix", 0, func(h hospital) { h.of(1).Process.ProcessorUs = 230_000_000 }, doctor.HotPrefix, 4,
		"m1 has used 95 % of its processors for 60 s, and calls for one prefix of keys take 70 % of the time", nil},
	{"a hot prefix at the leader", 0, func(h hospital) {
		h.of(1).Process.ProcessorUs, h.of(1).Core.LateHeartbeats = 230_000_000, 50
	}, doctor.HotPrefix, 3, "m1 has used 95 % of its processors", []doctor.Code{doctor.HeartbeatsLate}},
	{"an audit that drops", 0, func(h hospital) {
		h.of(2).Audit = []*quoratepb.ObservedOutput{{Name: "/var/log/audit.log", Dropped: 7, Trouble: "no space left on device"}}
	}, doctor.AuditDrops, 3, "m2 dropped 7 records of calls in the window, since the output /var/log/audit.log does not take them " +
		"fast enough (no space left on device)", nil},
	{"an audit that blocks", 0, func(h hospital) {
		h.of(3).Audit = []*quoratepb.ObservedOutput{{Name: "syslog", Required: true, Blocked: true, Dropped: 1}}
	}, doctor.AuditBlocked, 2, "m3 refuses the calls that its audit's policy records, since the required output syslog takes no " +
		"records;", []doctor.Code{doctor.AuditDrops}},
	{"a lost log", 0, func(h hospital) { h.of(2).Process.LogLinesDropped = 5 }, doctor.LogLinesDropped, 4, "m2 dropped 5 lines of its log", nil},
}

var faultsOfClients = []fault{
	{"an unread watcher", 0, func(h hospital) { h.of(2).Work.OverdrawnStreams, h.of(2).Work.WatchWaitingBytes = 2, 60<<20 },
		doctor.WatcherUnread, 3, "clients of m2 do not read their watches: 60 MiB wait for them, of 64 MiB", nil},
	{"a lease storm", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Work.Granted, o.Work.Leases = 5000, 4000 })
	}, doctor.LeaseStorm, 3, "5000 leases were granted within 60 s, beside 4000 that live: they are 83 % of what commits", nil},
	{"leases stand still", 0, func(h hospital) { h.of(1).Work.StoodMs = 9000 }, doctor.LeasesStood, 3,
		"the clock of leases stood still at m1 for 9.0 s of the last 60 s", nil},
	{"leases are many", 0, func(h hospital) { h.of(1).Work.LeaseBytes = 95 << 20 }, doctor.LeasesFull, 2, "900 leases have 95 MiB of the 100 MiB that m1 has", nil},
	{"huge values", 0, func(h hospital) { h.of(1).Work.PutBytes = 5800 * 200 << 10 }, doctor.ValuesHuge, 4,
		"the 5800 puts of the last 60 s have 200 KiB on average", nil},
	{"no compaction", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Store.Versions, o.Store.CompactRevision = 75_000, 0 })
	}, doctor.HistoryKept, 4, "the store keeps 75000 versions of 5000 keys, and was never compacted: compact, or set", nil},
	{"writes fail", 0, func(h hospital) { h.of(2).Work.FailedProposals = 300 }, doctor.ProposalsFail, 3, "300 of 2000 writes at m2 ended without a result", nil},
	{"clients are refused", 0, func(h hospital) { h.of(2).Work.ConnectionsRefused = 7 }, doctor.ClientsRefused, 3,
		"m2 refused 7 connections and 0 calls within 60 s", nil},
	{"a limit is nearly used", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Limits = []*quoratepb.ObservedLimit{{Name: "tenant-a", UsedPercent: 93, Bound: "keys", Used: 93_500, Most: 100_000}}
		})
	}, doctor.LimitNear, 3, `limit "tenant-a" is nearly full: its prefix has 93500 of the 100000 keys that it allows; from there on puts ` +
		"that add to it fail (ResourceExhausted); all else goes on: delete keys of it, or raise it", nil},
	{"a limit is used up", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Limits = []*quoratepb.ObservedLimit{{Name: "tenant-a", UsedPercent: 130, Bound: "bytes", Used: 130 << 20, Most: 100 << 20}}
		})
	}, doctor.LimitNear, 3, `limit "tenant-a" is full: its prefix has 130 MiB of the 100 MiB of keys and values that it allows, and puts ` +
		"that add to it fail now", nil},
	{"keys that are lost", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Keys = &quoratepb.ObservedKeys{Provider: "file", WrappedBy: "aa", Current: "aa", Asked: true}
		})
		h.of(2).Keys.Trouble, h.of(2).Keys.Current = "--encryption-key-file: open /etc/quorate/key: no such file or directory", ""
	}, doctor.KeyUnavailable, 2, "m2 runs, and could not open its encrypted data at its next start: --encryption-key-file: open " +
		"/etc/quorate/key: no such file or directory; do not stop it", nil},
	{"another key", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Keys = &quoratepb.ObservedKeys{Provider: "file", WrappedBy: "aa", Current: "aa", Asked: true}
		})
		h.of(2).Keys.Trouble, h.of(2).Keys.Current = "it was wrapped by key aa, which /etc/quorate/key lacks", "bb"
	}, doctor.KeyUnavailable, 2, "which /etc/quorate/key lacks", []doctor.Code{doctor.KeyNotRotated}},
	{"a key that is not used yet", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) {
			o.Keys = &quoratepb.ObservedKeys{Provider: "kms", WrappedBy: "v1", Current: "v1", Asked: true}
		})
		h.of(3).Keys.Current = "v2\x1b[2J"
	}, doctor.KeyNotRotated, 4, "the keys of m3 are wrapped by key v1 of the key service, and v2", nil},
	{"a member in the clear", 0, func(h hospital) {
		h.everywhere(func(o *quoratepb.Observation) { o.Keys = &quoratepb.ObservedKeys{Provider: "file", WrappedBy: "aa"} })
		h.of(3).Keys = nil
	}, doctor.PartlyEncrypted, 4, "m3 does not encrypt its data directory, and m1, m2 do", nil},
	{"one member that encrypts", 0, func(h hospital) {
		h.of(2).Keys = &quoratepb.ObservedKeys{Provider: "file", WrappedBy: "aa"}
	}, doctor.PartlyEncrypted, 4, "m1, m3 do not encrypt their data directories, and m2 does:", nil},
	{"a limit refuses", 0, func(h hospital) {
		h.of(2).Limits = []*quoratepb.ObservedLimit{{Name: "b\x1b\n", Refused: 59}, {Name: "batch", Refused: 60, UsedPercent: 89}}
	}, doctor.LimitRefuses, 4, `limit "batch" refused 60 requests at m2 within 60 s`, nil},
	{"passwords in clear", 0, func(h hospital) { h.of(2).Security.ClientsEncrypted = false }, doctor.PasswordsClear, 4, "clients log in at m2", nil},
	{"peers in clear", 0, func(h hospital) { h.of(2).Security.PeersEncrypted = false }, doctor.PeersInClear, 4,
		"m2 speaks with other machines' members unencrypted", nil},
	{"peers without certificates", 0, func(h hospital) { h.of(2).Security.PeersCertified = false }, doctor.PeersUncertain, 4,
		"the peer port of m2 asks for no certificates", nil},
}

var faultsOfTheWhole = []fault{
	{"one voter", 1, func(hospital) {}, doctor.OneVoter, 4, "m1 is the only voter", nil},
	{"two voters", 2, func(hospital) {}, doctor.TwoVoters, 2, "there are two voters, m1 and m2", nil},
	{"four voters", 4, func(hospital) {}, doctor.EvenVoters, 4, "4 voters survive as many failures as 3 would", nil},
	{"two zones", 0, func(h hospital) {
		for n, zone := range []string{"a", "a", "b"} {
			h.known(n+1, func(m *quoratepb.ObservedMember) { m.Zone = zone })
		}
	}, doctor.ZonesUneven, 4, "zone a has 2 of 3 voters, so that its failure stops all writes", nil},
	{"three zones of five", 5, func(h hospital) {
		for n, zone := range []string{"a", "a", "a", "b", "c"} {
			h.known(n+1, func(m *quoratepb.ObservedMember) { m.Zone = zone })
		}
	}, doctor.ZonesUneven, 3, "zone a has 3 of 5 voters", nil},
	{"all cordoned", 0, func(h hospital) {
		for n := range 3 {
			h.known(n+1, func(m *quoratepb.ObservedMember) { m.Cordoned = true })
		}
	}, doctor.CordonedAll, 3, "all 3 voters are cordoned", nil},
	{"two builds", 0, func(h hospital) { h.known(3, func(m *quoratepb.ObservedMember) { m.Build = "0.9" }) }, doctor.BuildsMixed, 4,
		"members run 2 builds, 0.9 and 1.0", nil},
	{"a level is held", 0, func(h hospital) {
		for n := range 2 {
			h.known(n+1, func(m *quoratepb.ObservedMember) { m.Level = 4 })
		}
	}, doctor.LevelHeld, 4, "feature level 3 is active and 4 is known: m3 holds it back", nil},
	{"leaders change", 0, func(h hospital) { h.of(2).Core.LeaderChanges = 12 }, doctor.LeaderChanges, 3,
		"the leader changed 12 times within 10 minutes, as m2 saw", nil},
	{"a voter lags", 5, func(h hospital) { h.peer(1, 3).CaughtUp, h.peer(1, 3).Match = false, 70_000 }, doctor.VoterBehind, 3,
		"m3 lacks 20000 entries, which took 3 minutes to commit", nil},
	{"a learner is stuck", 4, func(h hospital) {
		h.known(4, func(m *quoratepb.ObservedMember) { m.Voter = false })
		p := h.peer(1, 4)
		p.CaughtUp, p.Match, p.Gained = false, 500, 0
	}, doctor.LearnerStuck, 3, "learner m4 lacks 89500 entries and got none for 60 s", nil},
	{"snapshots are repeated", 4, func(h hospital) {
		h.known(4, func(m *quoratepb.ObservedMember) { m.Voter = false })
		p := h.peer(1, 4)
		p.CaughtUp, p.Match, p.Gained, p.Snapshots = false, 500, 0, 4
	}, doctor.SnapshotRepeats, 3, "m4 has been sent the state 4 times within 10 minutes", []doctor.Code{doctor.LearnerStuck}},
	{"a job is stuck", 0, func(h hospital) {
		h.of(1).Jobs = []*quoratepb.ObservedJob{{Id: 0x3f, Kind: "replace", State: "running", Phase: "swap",
			Message: "waits, for a voter is not heard", QuietMs: 600_000, Turn: true}}
	}, doctor.JobStuck, 3, "membership job 3f (replace) has not moved for 10 minutes: waits, for a voter is not heard", nil},
	{"a job whose newcomer died", 4, func(h hospital) {
		h.known(4, func(m *quoratepb.ObservedMember) { m.Voter, m.Joining = false, true })
		h.gone(4, doctor.FaultRefused)
		h.of(1).Jobs = []*quoratepb.ObservedJob{{Id: 0x3f, Kind: "replace", State: "running", Phase: "start", QuietMs: 600_000,
			Turn: true}}
	}, doctor.MemberDown, 3, "m4 is down, for 65 s", []doctor.Code{doctor.JobStuck}},
	{"a job whose newcomer nobody started", 4, func(h hospital) {
		h.gone(4, doctor.FaultNoEndpoint)
		h.known(4, func(m *quoratepb.ObservedMember) { m.Started, m.Voter, m.Joining = false, false, true })
		h.of(1).Jobs = []*quoratepb.ObservedJob{{Id: 0x3f, Kind: "replace", State: "running", Phase: "start", QuietMs: 600_000,
			Turn: true}}
	}, doctor.NotStarted, 4, "m4 was added and has never started", nil},
	{"a job of which a clock is off", 0, func(h hospital) {
		h.of(1).NowMs += 100_000
		h.of(1).Jobs = []*quoratepb.ObservedJob{{Id: 0x3f, Kind: "replace", State: "running", Phase: "swap", QuietMs: 100_000,
			Turn: true}}
	}, doctor.ClockOff, 3, "the clock of m1 is 99 s ahead", []doctor.Code{doctor.JobStuck}},
}
