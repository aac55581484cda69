package apply

import (
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/engine"
)

// The owner of a store is the data directory that it lies in. It is not part of the replicated state: a snapshot brings
// the sender's, which the receiver replaces before the store serves.

const ownerBytes = 8 + 8 + 16 + 8 + 16

// SetOwner records whose store it is. It is durable on return.
func SetOwner(eng engine.Engine, owner consensus.Identity) error {
	row := binary.LittleEndian.AppendUint64(nil, uint64(owner.Cluster))
	row = binary.LittleEndian.AppendUint64(row, uint64(owner.Member))
	row = append(row, owner.Storage[:]...)
	row = binary.LittleEndian.AppendUint64(row, owner.Epoch.Number)
	row = append(row, owner.Epoch.Recovery[:]...)
	batch := eng.NewBatch()
	defer batch.Close()
	batch.Set(rowOwner, row)
	err := batch.Commit()
	if err == nil {
		err = eng.Flush()
	}
	if err != nil {
		return fmt.Errorf("apply: write the owner: %w", err)
	}
	return nil
}

// SetOwner records whose store it is, durably. Nothing may be applied meanwhile.
func (m *Machine) SetOwner(owner consensus.Identity) error {
	if err := SetOwner(m.engine, owner); err != nil {
		return err
	}
	m.owner = owner
	return nil
}

// Owner returns whose store it is, as it was opened or set.
func (m *Machine) Owner() consensus.Identity { return m.owner }

func (m *Machine) loadOwner() error {
	row, found, err := m.engine.Get(rowOwner)
	switch {
	case err != nil:
		return fmt.Errorf("apply: read the owner: %w", err)
	case !found:
		return nil // nobody's: Owner is zero, and equal to no directory's
	case len(row) != ownerBytes:
		return fmt.Errorf("%w: owner", ErrCorruptRow)
	}
	m.owner = consensus.Identity{
		Cluster: consensus.ClusterID(binary.LittleEndian.Uint64(row)),
		Member:  consensus.MemberID(binary.LittleEndian.Uint64(row[8:])),
		Storage: consensus.StorageID(row[16:32]),
		Epoch:   consensus.Epoch{Number: binary.LittleEndian.Uint64(row[32:]), Recovery: [16]byte(row[40:])},
	}
	return nil
}
