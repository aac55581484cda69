package apply

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Options of Open.
type Options struct {
	// QuotaBytes is kept for the proposer, who refuses to grow a store of more than that (SizeBytes) and raises an alarm.
	// Apply never looks at it: members differ in size, and must not differ in what they apply.
	QuotaBytes int64
	Store      mvcc.Options
	// Hub is that of the machine which this one replaces after a snapshot; nil makes a new one.
	Hub *watch.Hub
}

// Machine is the replicated state of one member.
type Machine struct {
	engine  engine.Engine
	options Options
	store   *mvcc.Store
	leases  *lease.Lessor
	hub     *watch.Hub

	cluster consensus.ClusterID
	owner   consensus.Identity // the directory's; not replicated
	applied atomic.Pointer[consensus.Mark]
	// reached is the index of the last entry that some reader may see an effect of: the leases and alarms of a batch show
	// before its revision, and the revision before applied.
	reached atomic.Uint64

	// Of the goroutine that calls Apply.
	failed  error
	batch   batch
	noSpace bool // an alarm of that kind is raised
	corrupt bool
	chain   chain

	// sessionMu is held by Apply, but for what executes a command (executeAside), and to look up a result.
	sessionMu sync.Mutex
	sessions  sessions
	kept      atomic.Int64 // bytes of the table of results

	mu        sync.RWMutex           // guards what follows; slices in it are replaced, not changed
	meta      consensus.SnapshotMeta // as the last configuration entry, and what settled it, left it
	config    consensus.Config       // in force, by meta
	configID  consensus.ConfigID
	tombs     []Tombstone
	alarms    []kv.Alarm // sorted by member, then kind
	published map[consensus.MemberID]kv.PublishOp
	jobs      []Job // sorted by id
}

// Tombstone tells that a member was removed for ever, and by which entry.
type Tombstone struct {
	Member consensus.MemberID
	Index  consensus.Index
}

// Store returns the versioned store, for reads.
func (m *Machine) Store() *mvcc.Store { return m.store }

// Leases returns the leases.
func (m *Machine) Leases() *lease.Lessor { return m.leases }

// Hub returns the watch hub.
func (m *Machine) Hub() *watch.Hub { return m.hub }

// QuotaBytes returns Options.QuotaBytes.
func (m *Machine) QuotaBytes() int64 { return m.options.QuotaBytes }

// Cluster returns the cluster that the store belongs to.
func (m *Machine) Cluster() consensus.ClusterID { return m.cluster }

// Applied returns the last entry applied, whether or not it would survive a crash.
func (m *Machine) Applied() consensus.Mark { return *m.applied.Load() }

// DurableApplied returns the last entry that would still be applied after a power loss now: the log may forget what is
// before it.
func (m *Machine) DurableApplied() (consensus.Mark, error) {
	row, found, err := m.engine.GetDurable(rowApplied)
	if err != nil || !found {
		return consensus.Mark{}, err
	}
	return decodeMark(row)
}

// DurableMeta is SnapshotMeta of what would be left after a power loss now: the base that the log may be cut to.
func (m *Machine) DurableMeta() (consensus.SnapshotMeta, error) {
	for {
		mark, err := m.DurableApplied()
		if err != nil {
			return consensus.SnapshotMeta{}, err
		}
		row, found, err := m.engine.GetDurable(rowConfig)
		if err != nil || !found {
			return consensus.SnapshotMeta{}, err
		}
		meta, rest, err := consensus.DecodeSnapshotMeta(row)
		if err != nil || len(rest) != 0 {
			return consensus.SnapshotMeta{}, fmt.Errorf("%w: configuration: %w", ErrCorruptRow, err)
		}
		// The row bears the mark of its entry. If that is later, a flush came between the two reads.
		if meta.Mark.Index <= mark.Index {
			meta.Mark = mark
			return meta, nil
		}
	}
}

// Settled reports whether the configuration is no longer on its way: not joint, and known to enough members to be in
// force. Members that it removed may be switched off.
func (m *Machine) Settled() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return !m.meta.Open
}

// Config returns the configuration that is in force with the last entry applied. It must not be modified.
func (m *Machine) Config() (consensus.Config, consensus.ConfigID) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.config, m.configID
}

// SnapshotMeta returns what a snapshot of the state would stand for. Called beside Apply, the mark may lag behind
// the data by a batch; who needs both at once must stop applying.
func (m *Machine) SnapshotMeta() consensus.SnapshotMeta {
	m.mu.RLock()
	defer m.mu.RUnlock()
	meta := m.meta
	meta.Mark, meta.Config, meta.Tombs = m.Applied(), meta.Config.Clone(), slices.Clone(meta.Tombs)
	return meta
}

// Tombstones returns the members that were removed, in the order of their ids. The list must not be modified.
func (m *Machine) Tombstones() []Tombstone {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.tombs
}

// Removed reports whether a member was removed, and by which entry.
func (m *Machine) Removed(id consensus.MemberID) (consensus.Index, bool) {
	tombs := m.Tombstones()
	at, found := findTombstone(tombs, id)
	if !found {
		return 0, false
	}
	return tombs[at].Index, true
}

func findTombstone(tombs []Tombstone, id consensus.MemberID) (int, bool) {
	return slices.BinarySearchFunc(tombs, id, func(t Tombstone, id consensus.MemberID) int {
		switch {
		case t.Member < id:
			return -1
		case t.Member > id:
			return 1
		}
		return 0
	})
}

// Orphans returns the sessions of removed members that are still open, in no particular order.
func (m *Machine) Orphans() []consensus.SessionID {
	m.sessionMu.Lock()
	defer m.sessionMu.Unlock()
	var orphans []consensus.SessionID
	for _, t := range m.Tombstones() {
		for _, s := range m.sessions.byMember[t.Member] {
			orphans = append(orphans, s.id)
		}
	}
	return orphans
}

// Alarms returns the raised alarms, sorted. The list must not be modified.
func (m *Machine) Alarms() []kv.Alarm {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.alarms
}

// Published returns what a member made known of itself.
func (m *Machine) Published(id consensus.MemberID) (kv.PublishOp, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	op, found := m.published[id]
	return op, found
}

// Detach parts the watch hub from the store; to be called before the engine is closed. Streams stay open and wait
// for the machine that is opened with this one's Hub.
func (m *Machine) Detach() { m.hub.Detach() }

// Attach gives the machine a hub that another machine was detached from. Nothing may be applied meanwhile.
func (m *Machine) Attach(hub *watch.Hub) {
	m.hub = hub
	hub.Reset(m.store)
}
