package apply

import (
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
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

// Bootstrap makes an empty store the state of a cluster before its first entry: nothing applied, and the configuration
// that the cluster starts with (empty for a member that will learn it from the log). It is durable on return.
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
	batch.Set(rowIdentity, binary.AppendUvarint([]byte{formatVersion}, uint64(cluster)))
	batch.Set(rowApplied, appendMark(nil, consensus.Mark{}))
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
	m := &Machine{
		engine: eng, options: options, leases: lease.New(), hub: options.Hub,
		published: map[consensus.MemberID]kv.PublishOp{},
	}
	if m.hub == nil {
		m.hub = watch.NewHub(watch.Options{})
	}
	for _, load := range []func() error{
		m.loadIdentity, m.loadOwner, m.loadMarks, m.loadChain, m.loadMembers, m.loadAlarms, m.loadJobs, m.loadSessions,
		m.loadLeases,
	} {
		if err := load(); err != nil {
			return nil, err
		}
	}
	store, err := mvcc.Open(eng, options.Store)
	if err != nil {
		return nil, err
	}
	m.store = store
	m.hub.Reset(store)
	return m, nil
}

func (m *Machine) loadIdentity() error {
	row, found, err := m.engine.Get(rowIdentity)
	switch {
	case err != nil:
		return fmt.Errorf("apply: read the identity: %w", err)
	case !found:
		return ErrNotBootstrapped
	case len(row) == 0:
		return fmt.Errorf("%w: identity", ErrCorruptRow)
	case row[0] < formatVersion:
		return fmt.Errorf("%w (format %d, this one reads %d)", ErrOlder, row[0], formatVersion)
	case row[0] > formatVersion:
		return fmt.Errorf("%w: format %d, this one knows %d", ErrNewer, row[0], formatVersion)
	}
	cluster, err := decodeNumber("identity", row[1:])
	m.cluster = consensus.ClusterID(cluster)
	return err
}

func (m *Machine) loadMarks() error {
	row, found, err := m.engine.Get(rowApplied)
	if err != nil || !found {
		return fmt.Errorf("%w: no applied mark: %w", ErrCorruptRow, err)
	}
	mark, err := decodeMark(row)
	if err != nil {
		return err
	}
	m.applied.Store(&mark)
	m.reached.Store(uint64(mark.Index))
	row, found, err = m.engine.Get(rowConfig)
	if err != nil || !found {
		return fmt.Errorf("%w: no configuration: %w", ErrCorruptRow, err)
	}
	meta, rest, err := consensus.DecodeSnapshotMeta(row)
	if err != nil || len(rest) != 0 {
		return fmt.Errorf("%w: configuration: %w", ErrCorruptRow, err)
	}
	m.takeConfig(&meta)
	return nil
}

func (m *Machine) loadMembers() error {
	err := scan(m.engine, []byte{tableState, rowTombstone}, func(rest, value []byte) error {
		index, err := decodeNumber("tombstone", value)
		if err != nil || len(rest) != 8 {
			return fmt.Errorf("%w: tombstone %x", ErrCorruptRow, rest)
		}
		id := consensus.MemberID(binary.BigEndian.Uint64(rest))
		m.tombs = append(m.tombs, Tombstone{Member: id, Index: consensus.Index(index)})
		return nil
	})
	if err != nil {
		return err
	}
	return scan(m.engine, []byte{tableState, rowPublished}, func(_, value []byte) error {
		cmd, err := kv.DecodeCommand(value)
		if err != nil || cmd.Publish == nil {
			return fmt.Errorf("%w: published: %w", ErrCorruptRow, err)
		}
		m.published[consensus.MemberID(cmd.Publish.Member)] = *cmd.Publish
		return nil
	})
}

func (m *Machine) loadAlarms() error {
	err := scan(m.engine, []byte{tableState, rowAlarm}, func(rest, _ []byte) error {
		if len(rest) != 9 {
			return fmt.Errorf("%w: alarm %x", ErrCorruptRow, rest)
		}
		alarm := kv.Alarm{Member: binary.BigEndian.Uint64(rest), Kind: kv.AlarmKind(rest[8])}
		m.alarms = append(m.alarms, alarm)
		return nil
	})
	m.noteAlarms()
	return err
}

func (m *Machine) loadLeases() error {
	return scan(m.engine, []byte{tableLease}, m.leases.Load)
}
