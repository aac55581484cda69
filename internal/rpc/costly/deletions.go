package costly

import (
	"context"
	"runtime"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// MaxPassed is how much the deletions of one command may pass over that was deleted before, and is not gone from the store: a
// quarter of a million keys, as kv.WalkKeyBytes each, take 0.3 s, in which nothing else is applied.
const MaxPassed = 256 << 20

var errPassesTooMuch = status.Errorf(codes.InvalidArgument, "etcdserver: request is too large: its deletions pass over more "+
	"than %d keys that were deleted before and are not compacted: compact first, delete the range in parts, or have fewer "+
	"deletions in one transaction", MaxPassed/kv.WalkKeyBytes)

// Deletions looks at what the deletions of one command find, and bounds what they pass over. It is used by one goroutine.
type Deletions struct {
	ctx           context.Context
	store         *mvcc.Store
	most          int64 // that may be passed over
	found, walked int64 // keys found, and all keys, as WalkKeyBytes
}

// NewDeletions returns an account of one command's deletions in a store, which ends with ctx, and which may pass over so much.
func NewDeletions(ctx context.Context, store *mvcc.Store, most int64) *Deletions {
	return &Deletions{ctx: ctx, store: store, most: most}
}

// Visit calls visit with the keys that a deletion finds, as mvcc.Store.VisitKeys does. The error is InvalidArgument if the
// deletions of the command pass over too much, else that of the context or of the store.
func (d *Deletions) Visit(op *kv.DeleteOp, visit func(key []byte, size int) bool) error {
	return d.store.VisitKeys(op.Key, op.End, d, func(key []byte, size int) bool {
		d.found += kv.WalkKeyBytes
		return visit(key, size)
	})
}

// Walk implements kv.Account.
func (d *Deletions) Walk(bytes int) error {
	runtime.Gosched()
	if d.walked += int64(bytes); d.walked-d.found > d.most {
		return errPassesTooMuch
	}
	return d.ctx.Err()
}

// Take implements kv.Account.
func (*Deletions) Take(int) error { return nil }

// Release implements kv.Account.
func (*Deletions) Release() {}
