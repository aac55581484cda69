package apply

import (
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/engine"
)

// The owner of a store is the data directory that it lies in. It is not part of the replicated state: a snapshot has the
// sender's, which the receiver replaces before the store serves.

const ownerBytes = 8 + 8 + 16 + 8 + 16

// SetOwner records the owner of the store. It is durable on return.
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

// readOwner returns the owner of the store. It is zero, and equal to no directory's, if none was recorded.
func readOwner(eng engine.Engine) (consensus.Identity, error) {
	row, found, err := eng.Get(rowOwner)
	switch {
	case err != nil:
		return consensus.Identity{}, fmt.Errorf("apply: read the owner: %w", err)
	case !found:
		return consensus.Identity{}, nil
	case len(row) != ownerBytes:
		return consensus.Identity{}, fmt.Errorf("%w: owner", ErrCorruptRow)
	}
	return consensus.Identity{
		Cluster: consensus.ClusterID(binary.LittleEndian.Uint64(row)),
		Member:  consensus.MemberID(binary.LittleEndian.Uint64(row[8:])),
		Storage: consensus.StorageID(row[16:32]),
		Epoch:   consensus.Epoch{Number: binary.LittleEndian.Uint64(row[32:]), Recovery: [16]byte(row[40:])},
	}, nil
}
