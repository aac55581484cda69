package rpc

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// ownWritesPatience bounds how long a serializable read, or a watch from now on, waits for a write that this member has
// answered and not applied yet. Then it shows what is here, as a serializable read does.
const ownWritesPatience = time.Second

// ownWrites is the newest write that this member has answered before it had applied it, as the fast path does. In etcd whoever
// wrote through a member sees that in all that it reads through it.
type ownWrites struct {
	answered atomic.Int64 // a revision
	givenUp  atomic.Int64 // the newest revision that was waited for in vain: nobody waits for it again
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

// waitForOwn leaves half of a caller's time for the answer: who asks with short deadlines, of a member that is cut off, is
// shown what is here, too.
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
