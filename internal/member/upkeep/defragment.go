package upkeep

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/member/datadir"
)

// Defragment rewrites the store's tables so that the space of deleted keys is free. Reads and writes go on meanwhile.
// It ends early when ctx or the store's life does.
func Defragment(ctx context.Context, stores *datadir.Stores) error {
	store, held := stores.Acquire()
	if !held {
		return datadir.ErrStopped
	}
	defer store.Release()
	ctx, cancel := store.Within(ctx)
	defer cancel()
	if err := store.Engine.Defragment(ctx); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}
