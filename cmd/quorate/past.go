package main

import (
	"bytes"
	"context"
	"errors"

	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/undelete"
)

// readBackup restores a state of a continuous backup into a scratch directory for a command that reads it.
func readBackup(
	ctx context.Context, b *snapshot.Backup, progress func(done, total int64), use func(undelete.Past, *snapshot.Proof) error,
) error {
	return server.ReadBackup(ctx, continuous(b, progress), func(store *mvcc.Store, proved *server.Proved) error {
		return use(restored{store}, proof(proved))
	})
}

// restored is a restored store, as of its last revision.
type restored struct{ store *mvcc.Store }

// mostPageBytes bounds a page, unless one key has more.
const mostPageBytes = 8 << 20

var errPageFull = errors.New("the page is full")

// Page implements undelete.Past.
func (r restored) Page(ctx context.Context, key, end []byte, limit int) (versions []undelete.Version, more bool, err error) {
	if len(end) == 0 {
		answer, _, err := r.store.Range(&kv.RangeOp{Key: key})
		for i := range answer.KVs {
			versions = append(versions, versionOf(&answer.KVs[i]))
		}
		return versions, false, err
	}
	size := 0
	op := kv.RangeOp{Key: key, End: end, Limit: int64(limit)}
	page, err := r.store.RangeInto(&op, false, nil, mvcc.RowsFunc(func(pair *kv.KeyValue) error {
		if size += len(pair.Key) + len(pair.Value); size > mostPageBytes && len(versions) > 0 {
			return errPageFull
		}
		versions = append(versions, versionOf(pair))
		return ctx.Err()
	}))
	if errors.Is(err, errPageFull) {
		return versions, true, nil
	}
	return versions, page.Result.More, err
}

func versionOf(pair *kv.KeyValue) undelete.Version {
	return undelete.Version{Key: bytes.Clone(pair.Key), Value: bytes.Clone(pair.Value), ModRevision: int64(pair.ModRevision),
		Lease: int64(pair.Lease)}
}
