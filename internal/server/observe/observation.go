package observe

import (
	"context"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/membership"
)

// viewPatience is how long an observation waits for the leader's view, which is that of this member itself.
const viewPatience = 100 * time.Millisecond

// tally counts what happened so far.
func (p *Options) tally(now time.Time) tallies {
	m, core := p.Member, p.Member.CoreCounts()
	status := m.Status()
	t := tallies{at: now, commit: uint64(status.Commit), late: m.LateHeartbeats(), withheld: uint64(core.Log.Withheld),
		outrun: uint64(core.Log.Outrun), syncs: read(p.Syncs), applies: read(p.Applies), services: p.Services(),
		connectionsRefused: p.Refused(), linesDropped: p.Dropped(), sinks: p.Sinks(), processor: processorTime(),
		behind: m.Hub().Stats().Behind, peers: map[consensus.MemberID]peerTallies{}}
	_, store := m.StorageStats()
	t.stalls, t.reclaimFailures = store.Stalls, p.Counted.Compaction.Failed.Load()
	t.putsTook, t.readsTook = read(t.services.PutsTook), read(t.services.ReadsTook)
	t.offered, t.oneTrip = core.Fast.Tried, core.Fast.Decided
	t.puts, t.putBytes = p.Counted.Puts.Load(), p.Counted.PutBytes.Load()
	t.granted, t.revoked = p.Counted.LeasesGranted.Load(), p.Counted.LeasesRevoked.Load()
	t.stoodMS = p.Counted.LeasesStoodMillis.Load()
	stats := p.Transport.Stats()
	for i := range stats.Peers {
		t.peers[stats.Peers[i].Peer] = peerTallies{PeerStats: stats.Peers[i]}
	}
	for i := range status.Progress {
		of := t.peers[status.Progress[i].ID]
		of.match = uint64(status.Progress[i].Match)
		t.peers[status.Progress[i].ID] = of
	}
	return t
}

// observation is all that needs no earlier tally.
func (p *Options) observation(ctx context.Context, now time.Time) *quoratepb.Observation {
	m, status := p.Member, p.Member.Status()
	o := &quoratepb.Observation{
		ClusterId: uint64(m.Cluster()), MemberId: uint64(m.ID()), Name: p.Config.Name, Build: config.Build(),
		NowMs:       now.UnixMilli(),
		HeartbeatMs: p.Config.Consensus.HeartbeatInterval.Milliseconds(),
		ElectionMs:  p.Config.Consensus.ElectionTimeout.Milliseconds(),
		Core: &quoratepb.ObservedCore{Leader: uint64(m.Leader()), Term: uint64(m.Term()), Learner: status.IsLearner,
			Commit: uint64(status.Commit), Applied: uint64(status.Applied), LastIndex: uint64(status.LastIndex),
			LastTerm: uint64(status.LastTerm), Epoch: m.Epoch(), Corrupt: m.Corrupt()},
		Troubles: p.foreignProcesses(), Security: p.security(), Keys: p.Keys(), Certificates: p.certificates(), Disk: p.disk(),
		Process: &quoratepb.ObservedProcess{MemoryLimitBytes: p.Shares.Limit, OpenFilesLimit: p.OpenFiles, Parts: p.Parts(),
			Processors: int64(runtime.GOMAXPROCS(0))},
	}
	if err := m.Superseded(); err != nil {
		o.Core.Superseded = err.Error()
	}
	if err := m.Stalled(p.Config.Consensus.ElectionTimeout); err != nil {
		o.Core.Stalled, o.Core.StalledMs = err.Error(), o.ElectionMs
	}
	machine, release := m.Machine()
	defer release()
	o.Config = configOf(machine, &status.Config)
	o.Config.Index, o.Config.Settled = uint64(status.ConfigID.Index), status.ConfigSettled
	for _, alarm := range machine.Alarms() {
		o.Alarms = append(o.Alarms, &quoratepb.ObservedAlarm{Kind: alarmName(alarm.Kind), Member: alarm.Member})
	}
	o.Store, o.Work = p.store(machine), p.work(machine)
	o.Jobs = jobsOf(m.Membership().Jobs(), o.NowMs)
	o.Backup = p.backup(machine.Backup(), o.NowMs)
	o.Peers = p.peers(p.leadersView(ctx))
	return o
}

// leadersView is how the others are, if this member leads; nil: it does not.
func (p *Options) leadersView(ctx context.Context) *membership.View {
	if p.Member.Leader() != p.Member.ID() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	view, _, err := p.Member.Membership().DescribeCluster(ctx)
	if err != nil || view.Leader != p.Member.ID() {
		return nil // it just stopped leading
	}
	return &view
}

// foreignProcesses are sentences about processes that should not run: the alarms of the member without those of its disk and
// its certificates, of which the observation has the numbers.
func (p *Options) foreignProcesses() []string {
	own := p.OwnAlarms()
	return slices.DeleteFunc(p.Member.Alarms(), func(text string) bool { return slices.Contains(own, text) })
}

// security tells which ports are encrypted.
func (p *Options) security() *quoratepb.ObservedSecurity {
	outside := func(urls []config.URL) []config.URL { return slices.DeleteFunc(slices.Clone(urls), onlyInside) }
	inClear := func(u config.URL) bool { return !u.Secure() }
	peers, clients := outside(p.Config.Listen.PeerURLs), outside(p.Config.Listen.ClientURLs)
	return &quoratepb.ObservedSecurity{
		PeersEncrypted:   !slices.ContainsFunc(peers, inClear),
		PeersCertified:   len(peers) == 0 || p.Config.TLS.Peer.ClientCertAuth,
		ClientsEncrypted: !slices.ContainsFunc(clients, inClear), Users: p.Member.Users().Enabled(),
	}
}

// onlyInside reports whether only the machine itself reaches a URL.
func onlyInside(u config.URL) bool {
	host, _, err := net.SplitHostPort(u.Address)
	ip := net.ParseIP(host)
	return u.Network() == "unix" || err == nil && (strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}

func (p *Options) certificates() (all []*quoratepb.ObservedCertificate) {
	for _, e := range p.Expiries() {
		c := &quoratepb.ObservedCertificate{Port: string(e.Kind), What: e.What, UntilMs: e.At.UnixMilli()}
		if from := e.From(); !from.IsZero() {
			c.FromMs = from.UnixMilli()
		}
		all = append(all, c)
	}
	return all
}

func (p *Options) disk() *quoratepb.ObservedDisk {
	disk := &quoratepb.ObservedDisk{Low: p.Reserve.Low(), UnsafeNoSync: p.Config.Storage.UnsafeNoFsync}
	if room := p.Reserve.AvailableBytes(); room != math.MaxUint64 { // else the file system does not tell
		disk.AvailableBytes, disk.ReserveBytes = room, uint64(p.Config.Storage.DiskReserveBytes)
	}
	return disk
}

// configOf is a configuration, with what its members have published.
func configOf(machine *apply.Machine, known *consensus.Config) *quoratepb.ObservedConfig {
	c := &quoratepb.ObservedConfig{Joint: known.IsJoint(), Level: uint32(machine.ActiveLevel()),
		OwnLevel: uint32(machine.OwnLevel())}
	for i := range known.Members {
		m := &known.Members[i]
		one := &quoratepb.ObservedMember{Id: uint64(m.ID), Name: m.Name, Voter: slices.Contains(known.Voters, m.ID),
			Outgoing: slices.Contains(known.Outgoing, m.ID), Demoting: slices.Contains(known.LearnersNext, m.ID),
			Joining: m.Promote || m.Joining, Cordoned: m.Cordoned, Moved: len(m.FormerURLs) > 0, PeerUrls: m.PeerURLs}
		if published, started := machine.Published(m.ID); started {
			one.Started, one.Zone, one.Build, one.Level = true, published.Zone, published.Build, uint32(published.Level)
			one.ClientUrls = published.ClientURLs
			if published.Name != "" {
				one.Name = published.Name
			}
		}
		c.Members = append(c.Members, one)
	}
	return c
}

// alarmName is the name of an alarm, as etcd's API has it.
func alarmName(kind kv.AlarmKind) string {
	switch kind {
	case kv.AlarmNoSpace:
		return "NOSPACE"
	case kv.AlarmCorrupt:
		return "CORRUPT"
	}
	return "NONE"
}

func (p *Options) store(machine *apply.Machine) *quoratepb.ObservedStore {
	store := machine.Store()
	size := store.Size()
	retention, _ := p.Config.AutoCompaction() // which was valid at the start
	_, engine := p.Member.StorageStats()
	o := &quoratepb.ObservedStore{Revision: int64(store.Revision()), CompactRevision: int64(store.CompactRevision()),
		Keys: size.Keys, Versions: size.Versions, SizeBytes: machine.SizeBytes(), Pressure: engine.Pressure,
		AutoCompaction: retention != config.Retention{}}
	if quota, limited := p.Config.Quota(); limited {
		o.QuotaBytes = quota
	}
	return o
}

func (p *Options) work(machine *apply.Machine) *quoratepb.ObservedWork {
	watches := p.Member.Hub().Stats()
	return &quoratepb.ObservedWork{MaxRequestBytes: int64(p.Config.Limits.MaxRequestBytes),
		Leases: int64(machine.Leases().Len()), LeaseBytes: machine.LeaseBytes(),
		LeaseLimitBytes: p.Shares.State.Admits().Leases,
		Watchers:        int64(watches.Watchers), WatchersBehind: int64(watches.Behind),
		WatchWaitingBytes: watches.WaitingBytes,
		OverdrawnStreams:  watches.Overdrawn, WatchLimitBytes: p.Shares.Watch.Total, WatchHostBytes: p.Shares.Watch.Host}
}

// jobsOf are the membership jobs that have not ended.
func jobsOf(jobs []membership.Job, now int64) (all []*quoratepb.ObservedJob) {
	for i := range jobs {
		if job := &jobs[i]; !job.State.Ended() {
			all = append(all, &quoratepb.ObservedJob{Id: uint64(job.ID), Kind: string(job.Spec.Kind),
				State: string(job.State),
				Phase: string(job.Phase), Message: job.Message, QuietMs: max(0, now-job.Updated), Turn: len(all) == 0})
		}
	}
	return all
}

// backupAhead is how far the clock of the member that ships may be ahead, in milliseconds.
const backupAhead = 5 * 60_000

// backup is what the cluster knows of its continuous backup; nil: there never was one.
func (p *Options) backup(row *kv.BackupRow, now int64) *quoratepb.ObservedBackup {
	if row.Generation == 0 {
		return nil
	}
	age := func(at int64) int64 {
		if at == 0 {
			return 0
		}
		return max(1, now-at)
	}
	seen := func(at int64) int64 { // of the place, where others may write: what is to come is not known
		if at > now+backupAhead {
			return 0
		}
		return age(at)
	}
	said, last, proven := &row.Progress, &row.Proofs.Last, &row.Proofs.Proven
	return &quoratepb.ObservedBackup{On: row.Policy.On, Member: row.Member, SinceMs: age(row.Policy.Since),
		ReportedMs: age(said.At), RestorableMs: seen(said.Restorable.Time), RestorableRevision: int64(said.Restorable.Revision),
		BaseMs: seen(said.Base.Time), Gaps: said.Gaps, GapMs: age(said.Gap.Time), Trouble: said.Trouble,
		VerifySeconds: row.Policy.VerifySeconds, SealMs: row.Policy.SealMillis, BaseSeconds: row.Policy.BaseSeconds,
		Recipients: uint64(len(strings.Fields(row.Policy.Recipients))),
		VerifiedMs: age(last.At), VerifiedRevision: int64(last.Point.Revision), Proven: last.Proven, Failed: last.Failed,
		Why: last.Why, Damaged: last.Damaged, ProvenMs: age(proven.At),
		Refused: p.RefusesPlace(row.Policy.Place), RetentionWhy: said.Retention.Why}
}

// peers are the links to the others and, if this member leads, their progress.
func (p *Options) peers(view *membership.View) (all []*quoratepb.ObservedPeer) {
	stats := p.Transport.Stats()
	for i := range stats.Peers {
		known := &stats.Peers[i]
		one := &quoratepb.ObservedPeer{Id: uint64(known.Peer), Connected: !known.ConnectedSince.IsZero(),
			Fault: known.Fault}
		if one.Connected {
			one.ConnectedMs = time.Since(known.ConnectedSince).Milliseconds()
		}
		if trouble, found := p.Transport.Trouble(known.Peer); found {
			one.Refused = trouble.Reason.String()
		}
		if view != nil {
			fillProgress(one, view, known.Peer)
		}
		all = append(all, one)
	}
	return all
}

func fillProgress(one *quoratepb.ObservedPeer, view *membership.View, id consensus.MemberID) {
	for i := range view.Members {
		m := &view.Members[i]
		if m.ID != id {
			continue
		}
		one.Followed, one.Active, one.SilentMs, one.CaughtUp, one.State = true, m.Active, m.SilentMS, m.CaughtUp, m.State
		one.Match = uint64(m.Match)
		if m.Snapshot != nil {
			one.SnapshotSentBytes, one.SnapshotTotalBytes = m.Snapshot.Sent, m.Snapshot.Total
		}
	}
}
