package fetch

import (
	"bytes"
	"context"
	"errors"

	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Prune performs an operation of a prune.Pruner.
func Prune(ctx context.Context, store objects.Store, op *prune.Op) (o prune.Outcome) {
	var err error
	switch op.Kind {
	case prune.List:
		var infos []objects.Info
		infos, o.More, err = store.List(ctx, op.Name, op.After, objects.MaxList)
		for i := range infos {
			o.Listed = append(o.Listed, prune.Listed{Name: infos[i].Name, Size: infos[i].Size, Time: infos[i].Time.UnixMilli()})
		}
	case prune.Get:
		o.Content, err = Object(ctx, store, op.Name, op.Hash, op.Most)
		if damage := (*DamageError)(nil); errors.As(err, &damage) {
			o.Absent = errors.Is(err, objects.ErrNotFound)
			o.Content, o.Damaged, err = nil, !o.Absent, nil
		}
	case prune.Put:
		err = objects.PutOnce(ctx, store, op.Name, bytes.NewReader(op.Content), int64(len(op.Content)))
	case prune.Delete:
		err = store.Delete(ctx, op.Name)
	}
	if err != nil {
		o.Why, o.Refused = err.Error(), !objects.Passing(err) && ctx.Err() == nil
	}
	return o
}
