package member

import (
	"context"

	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/upkeep"
)

// Defragment rewrites the store's tables so that the space of deleted keys is free. Reads and writes go on meanwhile;
// it ends early when the member stops or a snapshot replaces the store.
func (m *Member) Defragment(ctx context.Context) error { return upkeep.Defragment(ctx, &m.stores) }

// StorageStats returns what log and store have counted.
func (m *Member) StorageStats() (wal.Stats, engine.Stats) {
	store, held := m.stores.Hold()
	if !held {
		return m.data.WAL.Stats(), engine.Stats{}
	}
	defer store.Release()
	return m.data.WAL.Stats(), store.Engine.Stats()
}
