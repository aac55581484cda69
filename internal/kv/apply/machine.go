package apply

import (
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/counts"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/limits/rates"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Options of Open.
type Options struct {
	// QuotaBytes is for the proposer, which refuses to grow a store of more than that (SizeBytes) and raises an alarm. Apply
	// never reads it: members differ in size, and must not differ in what they apply.
	QuotaBytes int64
	Store      mvcc.Options
	// Hub is the hub of the machine which this one replaces after a snapshot; nil makes a new one.
	Hub *watch.Hub
	// Counts counts the applied commands; nil makes new ones.
	Counts *counts.Counts
	// Level is the highest feature level that this build knows; zero: level.Own. Needs returns the level that an encoded
	// command needs, and false if this build knows no such command; nil: kv.Needs. Only tests and the simulator set them, to
	// the values of package nextlevel.
	Level level.Level
	Needs func(payload []byte) (_ level.Level, known bool)
	// MostLeases is the memory of this process for leases, in bytes: with more, Open returns a memory.LeasesError. Zero means
	// no bound.
	MostLeases int64
	// EndBytes replaces the constant of that name; zero: the constant. The simulator sets it, where leases are small.
	EndBytes int64
	// LimitCountBytes replaces kv.LimitCountBytes; zero: the constant. Tests set it, where prefixes are small.
	LimitCountBytes int64
	// MostHeads replaces maxHeads; zero: the constant. The simulator sets it, where few heads are told.
	MostHeads int
	// EventBytes bounds the events of one batch that are kept for watchers, which read more of them from the store. Zero, or
	// more than maxEventBytes, means maxEventBytes.
	EventBytes int
	Faults     Faults
}

// Faults drop rules, for negative controls.
type Faults struct {
	Unpermitted         bool // applied commands are not checked for permissions
	EvaluateUnpermitted bool // evaluated commands are not, either
	Ungated             bool // commands are applied below the level that they need
	Unsoaked            bool // the level rises whatever its policy
	Unheld              bool // a downgrade does not hold the level
	KeepsSoak           bool // what soaked before a downgrade counts after it
	PackForgets         bool // only the first result of a pack counts
	FirstAuthor         bool // all changes of a batch have the author of its first command
	LateMoments         bool // a moment has noted the revision from before its batch
	OverQuota           bool // puts are not checked for quotas
	EvaluateQuota       bool // evaluated puts have results although a quota may refuse them
	DeletedCounts       bool // deletions do not lower what a quota counts
}

// Machine is the replicated state of one member. Each of its tables has its own lock; apply.go applies the entries.
type Machine struct {
	engine  engine.Engine
	options Options
	cluster consensus.ClusterID
	owner   consensus.Identity // the data directory's; not replicated

	store    *mvcc.Store
	leases   *lease.Lessor
	hub      *watch.Hub
	config   *configTable
	members  *memberTable
	alarms   *alarmTable
	jobs     *jobTable
	auth     *authTable
	limits   *limitTable
	audit    *auditTable
	backup   *backupTable
	levels   *levelTable
	moments  *momentTable
	sessions *sessionTable
	chain    chain
	position position

	// Of the goroutine that calls Apply.
	executor executor
	failed   error
	row      []byte // buffer
}

// Store returns the versioned store, for reads.
func (m *Machine) Store() *mvcc.Store { return m.store }

// Leases returns the leases.
func (m *Machine) Leases() *lease.Lessor { return m.leases }

// keys are the keys of leases as of the last batch.
func (m *Machine) keys() leasedKeys {
	return leasedKeys{m.leases, &lease.Committed{Reader: committedRows{m.engine}, Prefix: []byte{tableLease}}}
}

// VisitLeaseKeys calls visit with each key attached to a lease, in order, until it returns false: as of the last batch. The key
// is valid during the call. The error is an operating error.
func (m *Machine) VisitLeaseKeys(id kv.LeaseID, visit func(key []byte) bool) error {
	return m.keys().rows.VisitKeys(id, visit)
}

// Counts returns the counts of this machine and of those that it replaced.
func (m *Machine) Counts() *counts.Counts { return m.executor.counts }

// Hub returns the watch hub.
func (m *Machine) Hub() *watch.Hub { return m.hub }

// Detach separates the watch hub from the store; to be called before the engine is closed. Streams stay open and wait for the
// machine that is opened with this one's Hub.
func (m *Machine) Detach() { m.hub.Detach() }

// Attach gives the machine a hub that another machine was detached from. No entry may be applied meanwhile.
func (m *Machine) Attach(hub *watch.Hub) {
	m.hub = hub
	hub.Reset(m.store)
}

// Cluster returns the cluster that the store belongs to.
func (m *Machine) Cluster() consensus.ClusterID { return m.cluster }

// SetOwner records the owner of the store, durably. No entry may be applied meanwhile.
func (m *Machine) SetOwner(owner consensus.Identity) error {
	if err := SetOwner(m.engine, owner); err != nil {
		return err
	}
	m.owner = owner
	return nil
}

// Owner returns the owner of the store, as it was opened or set.
func (m *Machine) Owner() consensus.Identity { return m.owner }

// Applied returns the last entry applied, whether or not it would survive a crash.
func (m *Machine) Applied() consensus.Position { return m.position.last() }

// DurableApplied returns the last entry that would still be applied after a power loss now: the log may drop the entries before
// it.
func (m *Machine) DurableApplied() (consensus.Position, error) {
	row, found, err := m.engine.GetDurable(rowApplied)
	if err != nil || !found {
		return consensus.Position{}, err
	}
	return decodePosition(row)
}

// Chain returns the hash of the last entry applied.
func (m *Machine) Chain() ChainMark { return m.chain.latest() }

// ChainAt returns the hash at index, or at the last index before it that is known: all of the last 4,096 entries are, and
// before these the multiples of 1,024 among the last million, but none from before this machine was opened.
func (m *Machine) ChainAt(index consensus.Index) (ChainMark, bool) { return m.chain.at(index) }

// Settled reports whether the configuration's change is complete: not joint, and known to enough members to be in force.
// Members that it removed may be switched off.
func (m *Machine) Settled() bool { return m.config.settled() }

// Config returns the configuration that is in force with the last entry applied. It must not be modified.
func (m *Machine) Config() (consensus.Config, consensus.ConfigID) { return m.config.inForce() }

// SnapshotMeta returns the metadata of a snapshot of the present state. Concurrently with Apply, the position may be a batch
// behind the data; a caller that needs both to agree must stop applying.
func (m *Machine) SnapshotMeta() consensus.SnapshotMeta { return m.config.snapshotMeta(m.Applied()) }

// Tombstones returns the members that were removed, in the order of their ids. The list must not be modified.
func (m *Machine) Tombstones() []Tombstone { return m.members.tombstones() }

// Removed reports whether a member was removed, and by which entry.
func (m *Machine) Removed(id consensus.MemberID) (consensus.Index, bool) {
	return m.members.removed(id)
}

// Published returns what a member published of itself.
func (m *Machine) Published(id consensus.MemberID) (kv.PublishOp, bool) {
	return m.members.publishedBy(id)
}

// LeastMemory returns the least memory that a member of the configuration has published, and the member; zero: none has
// published any.
func (m *Machine) LeastMemory() (bytes int64, of kv.PublishOp) {
	config := m.config.last()
	for _, id := range config.IDs() {
		if p, _ := m.members.publishedBy(id); p.Memory > 0 && (bytes == 0 || p.Memory < bytes) {
			bytes, of = p.Memory, p
		}
	}
	return bytes, of
}

// Alarms returns the raised alarms, sorted. The list must not be modified.
func (m *Machine) Alarms() []kv.Alarm { return m.alarms.list() }

// Jobs returns the jobs, sorted by id. The list and the bodies must not be modified.
func (m *Machine) Jobs() []Job { return m.jobs.list() }

// Moments returns what ties revisions to times, in the order of the log. The list must not be modified.
func (m *Machine) Moments() kv.Moments { return m.moments.all() }

// Users returns users and roles.
func (m *Machine) Users() *auth.State { return m.auth.state.Load() }

// Permit returns the error with which a command would be rejected now for lack of permission.
func (m *Machine) Permit(cmd *kv.Command) error { return permit(m.Users(), m.keys(), cmd) }

// PermitLease checks whether a user may renew a lease.
func (m *Machine) PermitLease(by auth.Credentials, id kv.LeaseID) error {
	p := permission{user: m.Users().Check(by), leases: m.keys()}
	return p.mayLease(id)
}

// Limits returns the rules that bound users and prefixes; nil: there are none.
func (m *Machine) Limits() *rates.Set { return m.limits.present.Load() }

// LimitUses returns the uses of the rules that have a quota, sorted by name. The entries of the batch under way may be in them.
func (m *Machine) LimitUses() []LimitUse { return m.limits.shownUses() }

// ActiveLevel returns the active feature level.
func (m *Machine) ActiveLevel() level.Level { return m.levels.now() }

// Needs returns the feature level below which an encoded command is not applied; false if this build knows no such command.
func (m *Machine) Needs(payload []byte) (_ level.Level, known bool) { return m.levels.needs(payload) }

// OwnLevel returns the highest feature level that this build knows.
func (m *Machine) OwnLevel() level.Level { return m.levels.own }

// CommonLevel returns the highest feature level that all members know, as far as this build knows levels.
func (m *Machine) CommonLevel() level.Level { return m.levels.common() }

// LevelView returns the members and the policy now, for a command whose effect depends on them.
func (m *Machine) LevelView() kv.LevelView { return m.levels.levelView() }

// HasReturned reports whether a downgrade is under way, and all members run builds that it goes back to.
func (m *Machine) HasReturned() bool {
	if m.levels.rise.Load().Target.IsZero() {
		return false
	}
	of := m.levels.levelView()
	return m.levels.returned(&of)
}

// Rise returns what decides when the active level rises.
func (m *Machine) Rise() level.Rise { return *m.levels.rise.Load() }

// HeldBack returns the members that have not published that they know a level, in the order of their ids: voters, outgoing ones
// and learners.
func (m *Machine) HeldBack(l level.Level) []level.Holder { return m.levels.heldBack(l) }

// Result returns the result of a proposal, if an entry of it has been applied and its session is not retired.
func (m *Machine) Result(id consensus.ProposalID) (kv.Result, bool, error) {
	return m.sessions.result(id)
}

// Decided returns the state of a proposal. done: an entry of it was applied, which decided its result, if not yet visibly.
// retired: its session takes no proposals and never will, so none of it will be executed from now on; it may have been before.
// Both are false for a proposal whose entry may still come, and while this member has not applied the opening of its session.
// The answer for an entry that is being applied is as certain as the log.
func (m *Machine) Decided(id consensus.ProposalID) (done, retired bool) {
	return m.sessions.decided(id)
}

// SessionOpen reports whether a session takes proposals.
func (m *Machine) SessionOpen(id consensus.SessionID) bool { return m.sessions.isOpen(id) }

// SessionEnded reports whether a session is not open and never will be.
func (m *Machine) SessionEnded(id consensus.SessionID) bool { return m.sessions.ended(id) }

// Orphans returns the sessions of removed members that are still open, in no particular order.
func (m *Machine) Orphans() []consensus.SessionID { return m.sessions.orphans() }

// ClientSessions returns the open sessions of native clients, in no particular order.
func (m *Machine) ClientSessions() []consensus.SessionID { return m.sessions.ofClients() }

// NextClientSession returns a name under which a client may open its next session, unless sessions that were opened after this
// call end before. above is the last session that the client has had: this member may not have applied its opening yet, and the
// same name would be taken for a repeated opening of it.
func (m *Machine) NextClientSession(client consensus.MemberID, above uint64) consensus.SessionID {
	return m.sessions.nextOfClient(client, above)
}

// QuotaBytes returns Options.QuotaBytes.
func (m *Machine) QuotaBytes() int64 { return m.options.QuotaBytes }

// SizeBytes is the size that counts against the quota: the bytes of all versions that are kept, uncompressed, of the results of
// proposals, and of leases with their keys. It falls as compacted history is deleted, which each member does at its own pace,
// so that members differ in it: no applied state may depend on it. It does not depend on the engine's flushes and merges.
func (m *Machine) SizeBytes() int64 {
	return m.store.LogicalBytes() + m.sessions.kept.Load() + m.leases.SizeBytes()
}

// TableBoundBytes is the memory of the first and last keys of the store's tables.
func (m *Machine) TableBoundBytes() int64 { return m.engine.BoundBytes() }

// ResultBytes is the size of the results of proposals.
func (m *Machine) ResultBytes() int64 { return m.sessions.kept.Load() }

// SessionBytes is the size of the results of one session.
func (m *Machine) SessionBytes(id consensus.SessionID) int64 { return m.sessions.bytesOf(id) }
