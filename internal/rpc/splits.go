package rpc

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/split"
)

// SplitTally is how the time of a sample of writes was spent: all together.
type SplitTally struct {
	Writes                      uint64 // that it stands for
	Queue, Network, Sync, Apply time.Duration
}

// splits sum up how the time of writes was spent, of those only that are counted for the Top service: a sample, and all large
// ones.
type splits struct {
	writes                      atomic.Uint64
	queue, network, sync, apply atomic.Int64
}

// tally returns the sums so far.
func (t *splits) tally() SplitTally {
	return SplitTally{Writes: t.writes.Load(), Queue: time.Duration(t.queue.Load()), Network: time.Duration(t.network.Load()),
		Sync: time.Duration(t.sync.Load()), Apply: time.Duration(t.apply.Load())}
}

// addSplit counts how the time of a write at a member was spent, for as many writes as it stands for.
func (t *splits) addSplit(self, times uint64, begun, ended time.Time, p proposals.Passage) {
	one, known := split.New(consensus.MemberID(self), begun, ended, p, 0)
	if !known {
		return
	}
	t.writes.Add(times)
	t.queue.Add(int64(times) * int64(one.Queue))
	t.network.Add(int64(times) * int64(one.Network))
	t.sync.Add(int64(times) * int64(one.Sync))
	t.apply.Add(int64(times) * int64(one.Apply))
}
