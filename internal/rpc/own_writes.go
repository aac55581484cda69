package rpc

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// ownWritesPatience bounds how long a serializable read, or a watch without a start revision, waits for a write that this
// member has answered and not applied yet. After it the read shows the present state, as a serializable read may.
const ownWritesPatience = time.Second

// ownWrites is the newest write that this member has answered before it had applied it, as the fast path does. In etcd a client
// sees its writes through a member in all its reads through that member.
type ownWrites struct {
	answered atomic.Int64 // a revision
	givenUp  atomic.Int64 // the newest revision that was waited for in vain: no call waits for it again
}

func (o *ownWrites) note(revision kv.Revision) { raise(&o.answered, int64(revision)) }

// missing returns the revision that must be waited for if the store is at applied; zero: none.
func (o *ownWrites) missing(applied kv.Revision) kv.Revision {
	answered := o.answered.Load()
	if answered <= int64(applied) || answered <= o.givenUp.Load() {
		return 0
	}
	return kv.Revision(answered)
}

// waitForOwn leaves half of a caller's time for the answer: a member that is cut off also answers callers with short deadlines.
func waitForOwn(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(ownWritesPatience, time.Until(deadline)/2)
	}
	return ownWritesPatience
}

func raise(a *atomic.Int64, to int64) {
	for {
		now := a.Load()
		if now >= to || a.CompareAndSwap(now, to) {
			return
		}
	}
}
