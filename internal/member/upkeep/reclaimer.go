package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/member/datadir"
)

// ReclaimPace says when what compactions dropped is rewritten. The zero value is DefaultReclaimPace.
type ReclaimPace struct {
	Bytes    int64         // dropped since the last time, at least; and half of what is left, if that is more
	LowBytes int64         // the same while the disk is nearly full, whatever is left
	Retry    time.Duration // after a rewrite that failed
}

// DefaultReclaimPace keeps a store below 1.5 times what is left in it and 16 MiB, by rewriting in proportion to what was
// dropped.
var DefaultReclaimPace = ReclaimPace{Bytes: 16 << 20, LowBytes: 1 << 20, Retry: time.Minute}

const (
	reclaimPart  = 2               // of what is left: garbage may be a half of it
	reclaimPause = 5 * time.Second // between two looks
)

// Reclaimer gives the disk back what compactions dropped, where the engine would wait for more writes.
type Reclaimer struct {
	stores *datadir.Stores
	low    func() bool // the disk is nearly full
	pace   ReclaimPace
	logger *slog.Logger

	store   *datadir.Generation
	unknown bool  // it is not known what was dropped from store before this process opened it
	at      int64 // bytes that were dropped from store when it was last rewritten
	next    time.Time
}

// NewReclaimer returns a Reclaimer. low may be nil: the disk always has room.
func NewReclaimer(stores *datadir.Stores, low func() bool, pace ReclaimPace, logger *slog.Logger) *Reclaimer {
	if low == nil {
		low = func() bool { return false }
	}
	if pace == (ReclaimPace{}) {
		pace = DefaultReclaimPace
	}
	return &Reclaimer{stores: stores, low: low, pace: pace, logger: logger}
}

// Run works until ctx ends.
func (r *Reclaimer) Run(ctx context.Context) error {
	for {
		select {
		case <-time.After(reclaimPause):
			r.Step(ctx, time.Now())
		case <-ctx.Done():
			return nil
		}
	}
}

// Step rewrites what compactions touched, if it is time to. It reports whether it did.
func (r *Reclaimer) Step(ctx context.Context, now time.Time) (did bool) {
	if now.Before(r.next) {
		return false
	}
	store, held := r.stores.Acquire()
	if !held {
		return false
	}
	defer store.Release()
	if r.store != store { // after a start, or an installation
		r.store, r.at, r.unknown = store, 0, true
	}
	versions, low := store.Machine.Store(), r.low()
	dropped := versions.CompactedBytes()
	if !r.due(dropped-r.at, versions.LogicalBytes(), low, func() int64 { return int64(store.Engine.Stats().DiskBytes) }) {
		return false
	}
	life, cancel := store.Within(ctx)
	defer cancel()
	counts := &store.Machine.Counts().Compaction
	switch err := store.Engine.Reclaim(life, low); {
	case err == nil:
		r.at, r.unknown = dropped, false
		counts.Reclaims.Add(1)
		return true
	case life.Err() == nil: // neither replaced nor stopped
		r.next = now.Add(r.pace.Retry)
		counts.Failed.Add(1)
		r.logger.Warn("the store's garbage stays on disk for now", "err", err)
	}
	return false
}

// due tells whether to rewrite a store from which so much was dropped since the last time, with so much left.
func (r *Reclaimer) due(dropped, left int64, low bool, onDisk func() int64) bool {
	most := max(r.pace.Bytes, left/reclaimPart)
	if low && !r.unknown {
		return dropped >= r.pace.LowBytes
	}
	if low {
		most = r.pace.LowBytes
	}
	return (dropped >= most || r.unknown) && onDisk() > left+most
}
