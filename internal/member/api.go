package member

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/member/upkeep"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Stop ends the goroutines and closes log and store. Waiting requests fail with ErrStopped.
func (m *Member) Stop() error {
	m.life.end()
	m.requests.Close()
	return m.data.Close()
}

// ID names this member, Cluster the cluster it belongs to.
func (m *Member) ID() consensus.MemberID       { return m.data.Identity.Member }
func (m *Member) Cluster() consensus.ClusterID { return m.data.Identity.Cluster }

// PeerHandler takes what arrives from other members.
func (m *Member) PeerHandler() *PeerHandler { return &m.handler }

// WasRemoved reports whether a member was removed for ever, as far as is applied here.
func (m *Member) WasRemoved(id consensus.MemberID) bool { return m.config.removed(id) }

// Membership answers requests about the members of the cluster.
func (m *Member) Membership() *Membership { return &m.members }

// Clients is what this member does for native clients.
func (m *Member) Clients() *clients.Clients { return m.clients }

// Machine gives the state machine for reading; release must be called when done. The pointer changes when a snapshot
// replaces the store, so nobody may keep it.
func (m *Member) Machine() (machine *apply.Machine, release func()) { return m.stores.Machine() }

// Hub is the member's watch hub; it outlives store replacements.
func (m *Member) Hub() *watch.Hub { return m.hub }

// Users returns the users and roles that this member knows.
func (m *Member) Users() *auth.State { return m.stores.Latest().Users() }

// Leader returns the known leader or NoMember, Term the current term.
func (m *Member) Leader() consensus.MemberID { return m.lanes.Leader().Leader() }
func (m *Member) Term() consensus.Term       { return m.lanes.Leader().Term() }

// Learner reports whether this member was added to learn, not to vote once it has caught up.
func (m *Member) Learner() bool { return m.lanes.Leader().Learner() }

// LeaderChanged returns a channel that is closed at the next change of leader, including its loss.
func (m *Member) LeaderChanged() <-chan struct{} { return m.lanes.Leader().LeaderChanged() }

// Failed is closed when the member stopped by itself; Err then says why.
func (m *Member) Failed() <-chan struct{} { return m.life.failed }

// Err returns why the member stopped by itself.
func (m *Member) Err() error { return m.life.err() }

// Leaving is closed once the removal of this member is applied here: it stops soon, and no new request should reach it. If the
// removal is not applied here within an election timeout, Leaving is not closed, and the member stops with ErrRemoved.
func (m *Member) Leaving() <-chan struct{} { return m.departure.leaving }

// Depart tells a leaving member that nobody waits for it any more.
func (m *Member) Depart() { m.departure.depart() }

// Status is a copy of what the core knows now. After Stop it is the zero value. If the loop hangs it is the last copy
// that anybody got.
func (m *Member) Status() raft.Status { return m.status.ask(m.life.stopping, m.lanes.Inbox().Wake) }

// Stalled tells whether the member's loop, its log or its state machine has been at one piece of work for longer than
// limit, and which. The loop always has work: it ticks. The installation of a snapshot, which may rightly take long,
// does not count. It never waits for any of them.
func (m *Member) Stalled(limit time.Duration) error { return m.dog.Stalled(limit) }

// Superseded returns an *epoch.SupersededError while this member serves nothing because the cluster was recovered
// without it.
func (m *Member) Superseded() error { return m.epochs.Superseded() }

// ForeignEpochs returns one text, with what to do, for each member of another epoch of the cluster that this member has met.
func (m *Member) ForeignEpochs() []string { return m.epochs.Alarms() }

// Alarms returns one text, with what to do, for each: member of another epoch, process of another history, stray process,
// leader whose log lacks what is committed here, nearly full disk, TLS file that expires soon.
func (m *Member) Alarms() []string {
	alarms := slices.Concat(m.epochs.Alarms(), m.peers.otherHistories(), m.peers.strays())
	if e := m.lanes.Leader().Refused(); e != nil {
		alarms = append(alarms, conflictWords(e, m.config.nameOf(m.ID()), m.config.nameOf(e.Leader)))
	}
	if m.options.diskLow() {
		alarms = append(alarms, m.options.LowDisk())
	}
	if m.options.Expiring != nil {
		alarms = append(alarms, m.options.Expiring()...)
	}
	return alarms
}

// Corrupt reports whether this member must not answer from its state.
func (m *Member) Corrupt() bool { return m.integrity.Marked() }

// CompareAtStart compares all that this member stores with what the others do; integrity.ErrDiffers says that it must not
// serve.
func (m *Member) CompareAtStart(ctx context.Context) error { return m.integrity.CompareAtStart(ctx) }

// IntegrityCounts returns how often members were compared here.
func (m *Member) IntegrityCounts() integrity.Counts { return m.integrity.Counts() }

// Inferred returns how many proposals of this member it found committed before the leader told it, since it started.
func (m *Member) Inferred() uint64 { return m.lanes.Inferred() }

// HeldProposals returns how many proposals of this member wait here because as much as may be is on its way.
func (m *Member) HeldProposals() int { return m.requests.Held() }

// CoreCounts returns what the core counted since this member started, about a second late.
func (m *Member) CoreCounts() raft.Counts { return m.lanes.CoreCounts() }

// FastCounts returns what the fast path did here since this member started.
func (m *Member) FastCounts() raft.FastCounts { return m.lanes.CoreCounts().Fast }

// Propose replicates a command and returns what applying it gave. Result.Err is a rejection; the error is one of
// this package's and says whether the command may still happen.
func (m *Member) Propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	return m.requests.command(ctx, command)
}

// Prompt reports whether ProposeAsync and ReadAsync may be called: before a member has started, Propose and ReadIndex wait for
// that, and Propose raises the feature level if a command needs a later one.
func (m *Member) Prompt() bool {
	if !m.requests.Started() {
		return false
	}
	machine := m.stores.Latest()
	return machine.ActiveLevel() >= machine.OwnLevel()
}

// ProposeAsync is Propose without waiting: done is told once how the command ended, by a goroutine that must not be held up,
// and the command is not used any more once ProposeAsync has returned. abandon reports whether it was in time: then done is
// not told. With an error, done is not told either: a *lanes.NeedsLevelError if the command needs a feature level that is not
// active.
func (m *Member) ProposeAsync(command *kv.Command, done proposals.Completion) (abandon func() bool, err error) {
	return m.requests.Requests.Propose(command, done)
}

// ReadAsync is ReadIndex without waiting, as ProposeAsync is Propose. The result that done is told is empty.
func (m *Member) ReadAsync(done proposals.Completion) (abandon func() bool, err error) {
	return m.requests.Read(done)
}

// ReadIndex returns once the state applied here shows everything that was acknowledged before the call.
func (m *Member) ReadIndex(ctx context.Context) error { return m.requests.readIndex(ctx) }

// ChangeConfig asks the leader, wherever it is, for a configuration change, and returns the configuration that was
// applied once the change is done by the rule of its protocol: joint waits for its second entry. It
// fails with a *membership.RefusedError, with a *membership.AddressError for peer URLs, and with ErrChangeAborted if somebody
// aborted a joint change.
func (m *Member) ChangeConfig(ctx context.Context, request consensus.ChangeRequest) (consensus.Config, error) {
	return m.members.changer.change(ctx, &request)
}

// TransferLeadership hands leadership to another voter and returns when it leads. Only on the leader. A cordoned voter, or one
// that is marked corrupt, is refused with a *CordonedError.
func (m *Member) TransferLeadership(ctx context.Context, to consensus.MemberID) error {
	return m.members.transfer.to(ctx, to)
}

// RenewLeases renews at most expiry.MaxBatchLeases leases wherever the leader is, and returns in their order what became of
// them.
func (m *Member) RenewLeases(ctx context.Context, ids []kv.LeaseID) ([]lease.Renewal, error) {
	return m.leases.renew(ctx, ids)
}

// LeaseTimeToLive asks the leader for the remaining and the granted TTL in whole seconds.
func (m *Member) LeaseTimeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	return m.leases.timeToLive(ctx, id)
}

// Backup calls f with the opened state machine of a consistent checkpoint. Writes go on meanwhile. The context that f
// gets ends when the member stops, too.
func (m *Member) Backup(ctx context.Context, f func(ctx context.Context, machine *apply.Machine) error) error {
	return m.sender.Backup(ctx, f)
}

// Defragment rewrites the store's tables so that the space of deleted keys is free. Reads and writes go on meanwhile;
// it ends early when the member stops or a snapshot replaces the store.
func (m *Member) Defragment(ctx context.Context) error { return upkeep.Defragment(ctx, &m.stores) }

// LateHeartbeats counts how often this member, as the leader, came too late to send a heartbeat.
func (m *Member) LateHeartbeats() uint64 { return m.lanes.Late() }

// Readers returns how many hold the store now, to read it.
func (m *Member) Readers() int64 { return m.stores.Readers() }

// ProposalBytes is what all proposals bear that wait for their results here: those of this member, and those of native clients.
func (m *Member) ProposalBytes() (own, clients int) { return m.requests.OpenBytes() }

// StorageStats returns what log and store have counted.
func (m *Member) StorageStats() (wal.Stats, engine.Stats) {
	store, held := m.stores.Acquire()
	if !held {
		return m.data.WAL.Stats(), engine.Stats{}
	}
	defer store.Release()
	return m.data.WAL.Stats(), store.Engine.Stats()
}
