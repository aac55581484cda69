package apply

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/counts"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Bootstrapped reports whether the engine's store belongs to a cluster.
func Bootstrapped(eng engine.Engine) (bool, error) {
	_, found, err := eng.Get(rowIdentity)
	if err != nil {
		return false, fmt.Errorf("apply: read the identity: %w", err)
	}
	return found, nil
}

// Bootstrap makes an empty store the state of a cluster before its first entry: no entry applied, and the configuration that
// the cluster starts with (empty for a member that will learn it from the log). It is durable on return.
func Bootstrap(eng engine.Engine, cluster consensus.ClusterID, config consensus.Config) error {
	done, err := Bootstrapped(eng)
	if err != nil {
		return err
	}
	if done {
		return ErrBootstrapped
	}
	batch := eng.NewBatch()
	defer batch.Close()
	batch.Set(rowIdentity, identity(cluster, level.First)) // other members may run an earlier build: see kv.RaiseOp
	batch.Set(rowApplied, appendPosition(nil, consensus.Position{}))
	batch.Set(rowChain, appendChain(nil, 0, seed(cluster)))
	meta := consensus.Founding(config)
	batch.Set(rowConfig, consensus.AppendSnapshotMeta(nil, &meta))
	if err := batch.Commit(); err != nil {
		return fmt.Errorf("apply: bootstrap: %w", err)
	}
	if err := eng.Flush(); err != nil {
		return fmt.Errorf("apply: bootstrap: %w", err)
	}
	return nil
}

// Open reads the state of a bootstrapped store. The machine does not own the engine.
func Open(eng engine.Engine, options Options) (*Machine, error) {
	levels := &levelTable{own: cmp.Or(options.Level, level.Own), needs: options.Needs, faults: options.Faults}
	if levels.needs == nil {
		levels.needs = kv.Needs
	}
	cluster, err := readIdentity(eng, levels)
	if err != nil {
		return nil, err
	}
	owner, err := readOwner(eng)
	if err != nil {
		return nil, err
	}
	m := &Machine{
		engine: eng, options: options, cluster: cluster, owner: owner, leases: lease.New(), hub: options.Hub,
		config: &configTable{}, members: &memberTable{}, alarms: &alarmTable{}, jobs: &jobTable{}, auth: &authTable{},
		audit: &auditTable{most: cmp.Or(options.MostHeads, maxHeads)}, levels: levels,
		limits: &limitTable{overQuota: options.Faults.OverQuota, evaluateQuota: options.Faults.EvaluateQuota,
			deletedCounts: options.Faults.DeletedCounts},
		moments: &momentTable{}, backup: &backupTable{},
	}
	levels.config, levels.members, m.audit.members = m.config, m.members, m.members
	m.backup.members = m.members
	m.sessions = newSessionTable(eng, m.members)
	m.sessions.forgets = options.Faults.PackForgets
	m.executor = executor{leases: m.leases, alarms: m.alarms, members: m.members, sessions: m.sessions, jobs: m.jobs,
		levels: levels, moments: m.moments, auth: m.auth, audit: m.audit, limits: m.limits, backup: m.backup,
		counts: options.Counts, unpermitted: options.Faults.Unpermitted, lateMoments: options.Faults.LateMoments,
		endBytes: options.EndBytes, countBytes: options.LimitCountBytes, events: newEventBuffer(options.EventBytes)}
	m.executor.rows.Reader, m.executor.rows.Prefix = committedRows{eng}, []byte{tableLease}
	if m.executor.counts == nil {
		m.executor.counts = counts.New()
	}
	if err := m.load(); err != nil {
		return nil, err
	}
	if m.store, err = mvcc.Open(eng, options.Store); err != nil {
		return nil, err
	}
	if m.hub == nil {
		m.hub = watch.NewHub(watch.Options{})
	}
	m.hub.Reset(m.store)
	return m, nil
}

// load reads all tables but the versioned store.
func (m *Machine) load() error {
	if err := m.position.load(m.engine); err != nil {
		return err
	}
	if err := m.chain.load(m.engine, m.cluster, m.Applied().Index); err != nil {
		return err
	}
	if err := fits(m.engine, m.options.MostLeases); err != nil {
		return err
	}
	for _, load := range []func(engine.Engine) error{m.config.load, m.members.load, m.alarms.load, m.jobs.load,
		m.auth.load, m.levels.loadRise, m.limits.load, m.audit.load, m.moments.load, m.backup.load} {
		if err := load(m.engine); err != nil {
			return err
		}
	}
	if err := m.sessions.load(); err != nil {
		return err
	}
	return scan(m.engine, []byte{tableLease}, m.leases.Load)
}

// CheckLevel returns ErrNewer, with a *level.TooLowError, if the store is at a level that the build of options does not know.
// It reads nothing else; a store without a level is no error of it.
func CheckLevel(eng engine.Engine, options Options) error {
	_, err := readIdentity(eng, &levelTable{own: cmp.Or(options.Level, level.Own)})
	if errors.Is(err, ErrNewer) {
		return err
	}
	return nil
}

func readIdentity(eng engine.Engine, levels *levelTable) (consensus.ClusterID, error) {
	row, found, err := eng.Get(rowIdentity)
	switch {
	case err != nil:
		return 0, fmt.Errorf("apply: read the identity: %w", err)
	case !found:
		return 0, ErrNotBootstrapped
	case len(row) == 0 || row[0] < byte(level.First):
		return 0, fmt.Errorf("%w: identity %x", ErrCorruptRow, row)
	}
	levels.set(level.Level(row[0]))
	if levels.now() > levels.own {
		return 0, fmt.Errorf("%w: %w", ErrNewer, &level.TooLowError{Own: levels.own, Active: levels.now()})
	}
	cluster, err := decodeNumber("identity", row[1:])
	return consensus.ClusterID(cluster), err
}
