package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/datadir"
)

// A store is rewritten once compactions have dropped reclaimBytes and reclaimPart of what is left, if its files are larger than
// what is left by the same. So what is rewritten is in proportion to what was dropped. While the disk is nearly full,
// reclaimLowBytes are enough.
const (
	reclaimBytes    = 16 << 20
	reclaimPart     = 2
	reclaimLowBytes = 1 << 20

	reclaimPause = 5 * time.Second // between two looks
	reclaimRetry = time.Minute     // after one that failed
)

// Reclaimer gives the disk back what compactions dropped, where the engine would wait for more writes.
type Reclaimer struct {
	stores *datadir.Stores
	low    func() bool // the disk is nearly full
	logger *slog.Logger

	store *datadir.Generation
	at    int64 // bytes that were dropped from store when it was last rewritten
}

// NewReclaimer returns a Reclaimer. low may be nil.
func NewReclaimer(stores *datadir.Stores, low func() bool, logger *slog.Logger) *Reclaimer {
	if low == nil {
		low = func() bool { return false }
	}
	return &Reclaimer{stores: stores, low: low, logger: logger}
}

// Run works until ctx ends.
func (r *Reclaimer) Run(ctx context.Context) error {
	for pause := reclaimPause; ; pause = reclaimPause {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		if _, err := r.step(ctx); err != nil && ctx.Err() == nil {
			r.logger.Warn("the store's garbage stays on disk for now", "err", err)
			pause = reclaimRetry
		}
	}
}

// step rewrites what compactions touched, if it is time to.
func (r *Reclaimer) step(ctx context.Context) (did bool, err error) {
	store, held := r.stores.Acquire()
	if !held {
		return false, nil
	}
	defer store.Release()
	if r.store != store { // after a start, or an installation, nobody knows what the engine has dropped of it
		r.store, r.at = store, 0
	}
	versions, low := store.Machine.Store(), r.low()
	dropped := versions.CompactedBytes()
	if !due(dropped-r.at, versions.LogicalBytes(), low, func() int64 { return int64(store.Engine.Stats().DiskBytes) }) {
		return false, nil
	}
	ctx, cancel := store.Within(ctx)
	defer cancel()
	if err := store.Engine.Reclaim(ctx, low); err != nil {
		if store.Life().Err() != nil {
			return false, nil // replaced, or stopped
		}
		return false, err
	}
	r.at = dropped
	return true, nil
}

// due tells whether to rewrite a store from which so much was dropped since the last time, with so much left.
func due(dropped, left int64, low bool, onDisk func() int64) bool {
	if low {
		return dropped >= reclaimLowBytes
	}
	most := max(reclaimBytes, left/reclaimPart)
	return dropped >= most && onDisk() > left+most
}
