package apply

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// ChainMark is the hash over all entries after Since up to Index and their effects. Members whose marks have the same Since and
// Index, and different Sums, have applied different entries, or to different states.
type ChainMark struct {
	Since, Index consensus.Index
	Sum          uint64
}

// The numbers of sums that are kept: of the last entries applied, and of those at multiples of chainStride before.
const (
	chainRecent = 4096
	chainStride = 1024
	chainCoarse = 1024
)

// chain hashes the applied entries. It leaves out all in which members may differ without harm: the division of entries into
// batches, results that only a proposer keeps, and the progress of physical compaction.
type chain struct {
	since   consensus.Index
	sum     uint64   // of the entry that is being applied, or of the last one
	pending []uint64 // of the entries of the batch under way
	scratch []byte

	mu     sync.Mutex // guards what readers see
	first  consensus.Index
	last   consensus.Index
	recent [chainRecent]uint64
	coarse [chainCoarse]uint64
}

// effect is the effect of an entry that was executed.
type effect struct {
	events []kv.Event
	err    error
	users  uint64 // auth.State.Sum after it
	tables uint64 // Machine.tableSum after it
	author []byte // as the store notes it with the events; empty below level 2
}

// add extends the chain with an entry, the store's revision after it, and its effect: the new versions, and the ones that they
// replaced, as they were read, and from level 2 on their author. The value of a put is in the entry, or in the version before.
// The sum of each entry covers all users and roles, and all rows of the tables that level 2 brought, once there are any.
func (c *chain) add(e *consensus.Entry, revision kv.Revision, did *effect) {
	b := appendNumbers(c.scratch[:0], c.sum, uint64(e.Index), uint64(e.Term), uint64(e.Kind),
		uint64(e.Proposal.Session.Member), e.Proposal.Session.Number, e.Proposal.Sequence, uint64(e.ExactRevision),
		uint64(revision), xxhash.Sum64(e.Payload))
	if did.err != nil {
		b = append(b, kv.RejectionNumber(did.err)) // a build may word it otherwise
	}
	if did.users != 0 {
		b = appendNumbers(b, did.users)
	}
	if did.tables != 0 {
		b = appendNumbers(b, did.tables)
	}
	if len(did.events) > 0 {
		b = append(b, did.author...)
	}
	for i := range did.events {
		ev := &did.events[i]
		b = appendNumbers(b, uint64(ev.Kind), uint64(ev.KV.Version), uint64(ev.KV.Lease), uint64(len(ev.KV.Key)))
		b = append(b, ev.KV.Key...)
		if prev := ev.Prev; prev != nil {
			sum := ev.PrevSum // the same, whether or not the value was kept
			if !ev.Bare {
				sum = xxhash.Sum64(prev.Value)
			}
			b = appendNumbers(b, uint64(prev.CreateRevision), uint64(prev.ModRevision), uint64(prev.Lease), sum)
		}
		if len(b) > chainFold { // a deletion of very many keys
			b = appendNumbers(b[:0], xxhash.Sum64(b))
		}
	}
	c.sum = xxhash.Sum64(b)
	c.pending = append(c.pending, c.sum)
	c.scratch = b
}

// chainFold bounds the buffer.
const chainFold = 4096

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, number := range numbers {
		b = binary.LittleEndian.AppendUint64(b, number)
	}
	return b
}

// publish makes the sums of a batch that ends at last visible.
func (c *chain) publish(last consensus.Index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	index := last - consensus.Index(len(c.pending))
	for _, sum := range c.pending {
		index++
		c.keep(index, sum)
	}
	c.last = last
	c.pending = c.pending[:0]
}

func (c *chain) keep(index consensus.Index, sum uint64) {
	c.recent[index%chainRecent] = sum
	if index%chainStride == 0 {
		c.coarse[index/chainStride%chainCoarse] = sum
	}
}

// latest returns the mark of the last entry applied.
func (c *chain) latest() ChainMark {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ChainMark{Since: c.since, Index: c.last, Sum: c.recent[c.last%chainRecent]}
}

// at returns the mark at index, or at the last index before it that is known.
func (c *chain) at(index consensus.Index) (ChainMark, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	index = min(index, c.last)
	if index >= c.first && index+chainRecent > c.last {
		return ChainMark{Since: c.since, Index: index, Sum: c.recent[index%chainRecent]}, true
	}
	index -= index % chainStride
	if index >= c.first && index+chainStride*chainCoarse > c.last && index > 0 {
		return ChainMark{Since: c.since, Index: index, Sum: c.coarse[index/chainStride%chainCoarse]}, true
	}
	return ChainMark{}, false
}

// seed is the sum before the first entry.
func seed(cluster consensus.ClusterID) uint64 {
	return xxhash.Sum64(binary.LittleEndian.AppendUint64([]byte("quorate chain 1"), uint64(cluster)))
}

// append appends the row of the chain.
func (c *chain) append(dst []byte) []byte { return appendChain(dst, c.since, c.sum) }

func appendChain(dst []byte, since consensus.Index, sum uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, uint64(since)), sum)
}

// load continues the chain of a store in which the entries up to at are applied. A store that was written before there was a
// chain begins it here, and can not be compared with members whose chains began elsewhere.
func (c *chain) load(eng engine.Engine, cluster consensus.ClusterID, at consensus.Index) error {
	row, found, err := eng.Get(rowChain)
	if err != nil {
		return fmt.Errorf("apply: read the chain: %w", err)
	}
	c.since, c.sum = at, seed(cluster)
	if found {
		since, n := binary.Uvarint(row)
		if n <= 0 || len(row) != n+8 {
			return fmt.Errorf("%w: chain %x", ErrCorruptRow, row)
		}
		c.since, c.sum = consensus.Index(since), binary.LittleEndian.Uint64(row[n:])
	}
	c.first, c.last = at, at
	c.keep(at, c.sum)
	return nil
}
