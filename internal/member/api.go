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
	"github.com/quorate/quorate/internal/limits/rates"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/peercall"
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

// ID is the id of this member, Cluster that of its cluster, and Epoch the number of the cluster's epoch that its data have: how
// many recoveries without a majority there were.
func (m *Member) ID() consensus.MemberID       { return m.data.Identity.Member }
func (m *Member) Cluster() consensus.ClusterID { return m.data.Identity.Cluster }
func (m *Member) Epoch() uint64                { return uint64(m.data.Identity.Epoch.Number) }

// EpochName is the epoch with the id of the recovery that began it.
func (m *Member) EpochName() string { return m.data.Identity.Epoch.String() }

// PeerHandler handles messages, calls and snapshots of other members.
func (m *Member) PeerHandler() *PeerHandler { return &m.handler }

// WasRemoved reports whether a member was removed for ever, as far as entries are applied here.
func (m *Member) WasRemoved(id consensus.MemberID) bool { return m.config.removed(id) }

// Membership answers requests about the members of the cluster.
func (m *Member) Membership() *Membership { return &m.members }

// Clients is the part of the member that serves native clients.
func (m *Member) Clients() *clients.Clients { return m.clients }

// Machine returns the state machine for reading; release must be called when done. The caller must not keep the pointer: it
// changes when a snapshot replaces the store.
func (m *Member) Machine() (machine *apply.Machine, release func()) { return m.stores.Machine() }

// Hub is the member's watch hub; it outlives store replacements.
func (m *Member) Hub() *watch.Hub { return m.hub }

// Limits returns the rules that bound users and prefixes, as this member knows them; nil: there are none.
func (m *Member) Limits() *rates.Set { return m.stores.Latest().Limits() }

// Users returns the users and roles that this member knows.
func (m *Member) Users() *auth.State { return m.stores.Latest().Users() }

// Audit returns what this member knows of the audit's policy, and of the heads of the members' records.
func (m *Member) Audit() *apply.Audit { return m.stores.Latest().Audit() }

// Leader returns the known leader or NoMember, Term the current term.
func (m *Member) Leader() consensus.MemberID { return m.lanes.Leader().Leader() }
func (m *Member) Term() consensus.Term       { return m.lanes.Leader().Term() }

// Learner reports whether this member was added as a learner that stays one, and not to be promoted once it has caught up.
func (m *Member) Learner() bool { return m.lanes.Leader().Learner() }

// LeaderChanged returns a channel that is closed at the next change of leader, including its loss.
func (m *Member) LeaderChanged() <-chan struct{} { return m.lanes.Leader().LeaderChanged() }

// Failed is closed when the member stopped by itself; Err then says why.
func (m *Member) Failed() <-chan struct{} { return m.life.failed }

// Err returns why the member stopped by itself.
func (m *Member) Err() error { return m.life.err() }

// Leaving is closed once the removal of this member is applied here: the member stops soon, and new requests should not reach
// it. If the removal is not applied here within an election timeout, Leaving stays open, and the member stops with ErrRemoved.
func (m *Member) Leaving() <-chan struct{} { return m.departure.leaving }

// Depart tells a leaving member that no caller waits for it any more.
func (m *Member) Depart() { m.departure.depart() }

// Status returns a copy of the core's state. After Stop it is the zero value. If the loop hangs, Status returns the last copy.
func (m *Member) Status() raft.Status { return m.status.ask(m.life.stopping, m.lanes.Inbox().Wake) }

// Stalled returns an error that names the loop, the log or the state machine if it has been at one piece of work for longer
// than limit. The loop always has work: it ticks. The installation of a snapshot may rightly take long and does not count.
// Stalled never waits for any of them.
func (m *Member) Stalled(limit time.Duration) error { return m.dog.stalled(limit) }

// Superseded returns an *epoch.SupersededError while this member serves nothing because the cluster was recovered
// without it.
func (m *Member) Superseded() error { return m.epochs.Superseded() }

// ForeignEpochs returns one text, with advice for the operator, for each member of another epoch of the cluster that this
// member has met.
func (m *Member) ForeignEpochs() []string { return m.epochs.Alarms() }

// Alarms returns one text, with advice for the operator, for each: member of another epoch, process of another history, stray
// process, leader whose log lacks entries that are committed here, nearly full disk, TLS file that expires soon.
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

// CompareAtStart compares this member's whole state with that of the others; integrity.ErrDiffers says that it must not serve.
func (m *Member) CompareAtStart(ctx context.Context) error { return m.integrity.CompareAtStart(ctx) }

// IntegrityCounts returns how many comparisons this member made as a leader, and how many found a difference.
func (m *Member) IntegrityCounts() integrity.Counts { return m.integrity.Counts() }

// Inferred returns how many proposals of this member it found committed before the leader reported the commit, since it
// started.
func (m *Member) Inferred() uint64 { return m.lanes.Inferred() }

// HeldProposals returns how many proposals of this member wait here because the limit of those in flight is reached.
func (m *Member) HeldProposals() int { return m.requests.Held() }

// CoreCounts returns the core's counters since this member started, as of the last tick.
func (m *Member) CoreCounts() raft.Counts { return m.lanes.CoreCounts() }

// FastCounts returns the counters of the fast path here since this member started, as of the last tick.
func (m *Member) FastCounts() raft.FastCounts { return m.lanes.CoreCounts().Fast }

// Propose replicates a command and returns the result of applying it. Result.Err is a rejection; the error is one of this
// package's and says whether the command may still happen.
func (m *Member) Propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	return m.requests.command(ctx, command)
}

// Prompt reports whether ReadAsync may be called: before a member has started, ReadIndex waits for that.
func (m *Member) Prompt() bool { return m.requests.Started() }

// PromptFor reports whether ProposeAsync may be called with a command: before a member has started, Propose waits for that,
// and it raises the feature level, if it may, for a command that needs a later one. The command must have been checked, unless
// it is a put or a transaction: below the level of this build it is encoded, to see which level it needs.
func (m *Member) PromptFor(command *kv.Command) bool {
	if !m.requests.Started() {
		return false
	}
	machine := m.stores.Latest()
	if machine.ActiveLevel() >= machine.OwnLevel() {
		return true
	}
	needs, known := machine.Needs(command.Head())
	return known && machine.ActiveLevel() >= needs
}

// ProposeAsync is Propose without waiting: done is told once how the command ended, by a goroutine that must not be held up,
// and the command is not used any more once ProposeAsync has returned. abandon reports whether it was in time: then done is
// not told. With an error, done is not told either: a *lanes.NeedsLevelError if the command needs a feature level that is not
// active.
func (m *Member) ProposeAsync(command *kv.Command, done proposals.Completion) (abandon func() bool, err error) {
	return m.requests.Requests.Propose(command, done)
}

// ReadAsync is ReadIndex without waiting, as ProposeAsync is Propose. done is called with an empty result.
func (m *Member) ReadAsync(done proposals.Completion) (abandon func() bool, err error) {
	return m.requests.Read(done)
}

// ReadIndex returns once the state applied here includes all writes that were acknowledged before the call.
func (m *Member) ReadIndex(ctx context.Context) error { return m.requests.readIndex(ctx) }

// ChangeConfig asks the leader, whichever member it is, for a configuration change, and returns the applied configuration once
// the change is done by the rule of its protocol: a joint change waits for its second entry. It fails with a
// *membership.RefusedError, with a *membership.AddressError for peer URLs, and with ErrChangeAborted if the joint change was
// aborted.
func (m *Member) ChangeConfig(ctx context.Context, request consensus.ChangeRequest) (consensus.Config, error) {
	return m.members.changer.change(ctx, &request)
}

// TransferLeadership hands leadership to another voter and returns when that voter leads. It works only on the leader. The
// error is a *CordonedError for a voter that is cordoned or marked corrupt.
func (m *Member) TransferLeadership(ctx context.Context, to consensus.MemberID) error {
	return m.members.transfer.to(ctx, to)
}

// RenewLeases renews at most expiry.MaxBatchLeases leases at the leader, and returns one Renewal for each, in their order.
func (m *Member) RenewLeases(ctx context.Context, ids []kv.LeaseID) ([]lease.Renewal, error) {
	return m.leases.renew(ctx, ids)
}

// LeaseTimeToLive asks the leader for the remaining and the granted TTL, in seconds.
func (m *Member) LeaseTimeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	return m.leases.timeToLive(ctx, id)
}

// AskMember asks another member for what it tells of itself. A member of a build that does not know the subject answers
// codes.Unimplemented; an answer has MostTold bytes at most.
func (m *Member) AskMember(ctx context.Context, to consensus.MemberID, about Subject, question []byte) ([]byte, error) {
	return peercall.Ask(ctx, m.verdicts.caller, to, subjects[about], question)
}

// Backup calls f with the opened state machine of a consistent checkpoint. Writes go on meanwhile. The context of f also ends
// when the member stops.
func (m *Member) Backup(ctx context.Context, f func(ctx context.Context, machine *apply.Machine) error) error {
	return m.sender.Backup(ctx, f)
}

// Checkpoint makes a checkpoint of the store in a directory, which must not exist, and calls f with its opened state machine.
// The directory stays.
func (m *Member) Checkpoint(ctx context.Context, dir string, f func(*apply.Machine) error) error {
	return m.sender.Checkpoint(ctx, dir, f)
}

// Defragment rewrites the store's tables so that the space of deleted keys is free. Reads and writes go on meanwhile;
// it ends early when the member stops or a snapshot replaces the store.
func (m *Member) Defragment(ctx context.Context) error { return upkeep.Defragment(ctx, &m.stores) }

// LateHeartbeats counts how often this member, as the leader, was too late with a heartbeat.
func (m *Member) LateHeartbeats() uint64 { return m.lanes.Late() }

// Readers returns how many readers hold the store now.
func (m *Member) Readers() int64 { return m.stores.Readers() }

// ProposalBytes returns the bytes of all proposals that wait for their results here: those of this member, and those of native
// clients.
func (m *Member) ProposalBytes() (own, clients int) { return m.requests.OpenBytes() }

// StorageStats returns the counters of log and store.
func (m *Member) StorageStats() (wal.Stats, engine.Stats) {
	store, held := m.stores.Acquire()
	if !held {
		return m.data.WAL.Stats(), engine.Stats{}
	}
	defer store.Release()
	return m.data.WAL.Stats(), store.Engine.Stats()
}
