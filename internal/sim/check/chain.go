package check

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// chains checks that the hash chain over all applied entries is the same on all members at the same index, whatever batches,
// restarts and snapshots brought them there.
type chains struct {
	sums    map[consensus.Index]uint64
	holders map[consensus.Index]consensus.MemberID
	times   []time.Duration // when a member first had applied all entries up to an index
}

// ChainSum returns the chain's sum after an entry, as members had it; false: none has reported it.
func (s *Suite) ChainSum(index consensus.Index) (sum uint64, known bool) {
	sum, known = s.chains.sums[index]
	return sum, known
}

// AppliedAt returns when a member first had applied the log up to an index; false: none has.
func (s *Suite) AppliedAt(index consensus.Index) (at time.Duration, known bool) {
	if index >= consensus.Index(len(s.chains.times)) {
		return 0, false
	}
	return s.chains.times[index], true
}

// Chained records a member's chain at an index that it has applied.
func (s *Suite) Chained(member consensus.MemberID, index consensus.Index, sum uint64) {
	c := &s.chains
	if c.sums == nil {
		c.sums, c.holders = map[consensus.Index]uint64{}, map[consensus.Index]consensus.MemberID{}
	}
	for consensus.Index(len(c.times)) <= index {
		c.times = append(c.times, s.Now())
	}
	want, known := c.sums[index]
	if !known {
		c.sums[index], c.holders[index] = sum, member
		return
	}
	if want != sum {
		s.report("chain", "members %v and %v have chains %x and %x at index %d", c.holders[index], member, want, sum, index)
	}
}
