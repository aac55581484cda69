package wal

import (
	"encoding/binary"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// carried is the state that a new segment repeats from the older ones, with the end of the log.
type carried struct {
	hard consensus.HardState
	base consensus.SnapshotMeta
	last consensus.Index // of the last entry; base.Position.Index if there is none
	pool pool

	boots uint64
	epoch consensus.Epoch
}

func (c *carried) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, byte(itemCarried)), uint64(c.last))
	dst = consensus.AppendHardState(append(dst, byte(itemHard)), &c.hard)
	// The base is always written: one at index 0 may hold the configuration that the cluster began with.
	dst = consensus.AppendSnapshotMeta(append(dst, byte(itemBase)), &c.base)
	dst = appendEpoch(appendBoots(dst, c.boots), &c.epoch)
	for i := range c.pool.records {
		if !c.pool.records[i].Forget {
			dst = appendWitness(dst, &c.pool.records[i])
		}
	}
	return dst
}

// take applies b, which is durable now.
func (c *carried) take(b *Batch) {
	if b.Reset != nil {
		c.base, c.last = *b.Reset, b.Reset.Position.Index
	}
	if n := len(b.Entries); n > 0 {
		c.last = b.Entries[n-1].Index
	}
	if b.Hard != nil {
		c.hard = *b.Hard
	}
	if b.Boots > 0 {
		c.boots = b.Boots
	}
	if b.Epoch != nil {
		c.epoch = *b.Epoch
	}
	for i := range b.Witness {
		c.pool.take(&b.Witness[i])
	}
}

// pool holds the witness records in the order in which they came, so that nothing depends on the order of a map.
type pool struct {
	at        map[AttemptID]int
	records   []WitnessRecord // Forget marks a hole
	holes     int
	liveBytes int
}

// take adds or forgets a record. The payload is copied, as the caller may reuse its buffer. The copy is never written again:
// entries that were read by name alias it.
func (p *pool) take(r *WitnessRecord) {
	at, held := p.at[r.Attempt]
	if held {
		p.liveBytes -= len(p.records[at].Payload)
	}
	switch {
	case r.Forget && held:
		p.records[at] = WitnessRecord{Forget: true}
		p.holes++
		delete(p.at, r.Attempt)
	case r.Forget:
		return // it was never held, or was forgotten before
	case held:
		p.records[at].Payload = slices.Clone(r.Payload)
		p.liveBytes += len(r.Payload)
	default:
		if p.at == nil {
			p.at = make(map[AttemptID]int)
		}
		p.at[r.Attempt] = len(p.records)
		p.records = append(p.records, WitnessRecord{Attempt: r.Attempt, Payload: slices.Clone(r.Payload)})
		p.liveBytes += len(r.Payload)
	}
	if p.holes > 64 && p.holes > len(p.records)/2 {
		p.squeeze()
	}
}

// squeeze removes the holes.
func (p *pool) squeeze() {
	p.records = slices.DeleteFunc(p.records, func(r WitnessRecord) bool { return r.Forget })
	p.holes = 0
	for i := range p.records {
		p.at[p.records[i].Attempt] = i
	}
}

// get returns the held record of an attempt, or nil.
func (p *pool) get(id AttemptID) *WitnessRecord {
	if at, held := p.at[id]; held {
		return &p.records[at]
	}
	return nil
}

// live returns the held records, oldest first.
func (p *pool) live() []WitnessRecord {
	p.squeeze()
	return slices.Clone(p.records)
}
