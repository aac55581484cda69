package wal

import (
	"bytes"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
)

// An entry by name refers to a witness record for its payload, which a voter has on the disk already: only the other fields of
// the entry are written. Its own segment suffices to read it back, because the record is in the state that the segment begins
// with, or was added in the segment before the entry.

// commandOf returns the payload of the entry that r stands for, aliasing r, or nil if r is not an encoded record of its
// attempt. While r is held, such an entry may be written by name.
func commandOf(r *WitnessRecord) []byte {
	record, err := consensus.DecodeRecord(r.Payload)
	if err != nil || consensus.AttemptIDOf(record.Attempt) != r.Attempt {
		return nil
	}
	return record.Payload
}

func attemptOf(e *consensus.Entry) AttemptID {
	return consensus.AttemptIDOf(consensus.Attempt{Proposal: e.Proposal, Revision: e.ExactRevision})
}

// encoder turns the batches of one Append into items. It knows which records are held before each batch, and does not change
// the WAL's state: the Append may still fail.
type encoder struct {
	changed map[AttemptID]*WitnessRecord // by earlier batches of the same Append: the last change of each
	noted   int                          // the number of batches whose changes are in changed
	named   uint64                       // entries that were written by name
	witness uint64                       // bytes of witness records
}

// append encodes batches after dst. held is the pool before them.
func (c *encoder) append(dst []byte, batches []Batch, held *pool) []byte {
	c.named, c.witness = 0, 0
	for i := range batches {
		b := &batches[i]
		if b.Reset != nil {
			dst = consensus.AppendSnapshotMeta(append(dst, byte(itemReset)), b.Reset)
		}
		for j := range b.Entries {
			dst = c.entry(dst, &b.Entries[j], batches[:i], held)
		}
		if b.Hard != nil {
			dst = consensus.AppendHardState(append(dst, byte(itemHard)), b.Hard)
		}
		before := len(dst)
		for j := range b.Witness {
			dst = appendWitness(dst, &b.Witness[j])
		}
		c.witness += uint64(len(dst) - before)
		if b.Boots > 0 {
			dst = appendBoots(dst, b.Boots)
		}
		if b.Epoch != nil {
			dst = appendEpoch(dst, b.Epoch)
		}
	}
	if c.noted > 0 { // the records belong to the caller again
		clear(c.changed)
		c.noted = 0
	}
	return dst
}

func (c *encoder) entry(dst []byte, e *consensus.Entry, before []Batch, held *pool) []byte {
	if e.ExactRevision == 0 || len(e.Payload) == 0 || !c.holds(e, before, held) {
		return consensus.AppendEntry(append(dst, byte(itemEntry)), e)
	}
	c.named++
	bare := *e
	bare.Payload = nil
	return consensus.AppendEntry(append(dst, byte(itemNamed)), &bare)
}

// holds reports whether a record that is held after the batches before has the payload of e.
func (c *encoder) holds(e *consensus.Entry, before []Batch, held *pool) bool {
	for ; c.noted < len(before); c.noted++ {
		for i := range before[c.noted].Witness {
			if c.changed == nil {
				c.changed = make(map[AttemptID]*WitnessRecord)
			}
			r := &before[c.noted].Witness[i]
			c.changed[r.Attempt] = r
		}
	}
	if len(c.changed) == 0 && len(held.at) == 0 {
		return false
	}
	id := attemptOf(e)
	r, changed := c.changed[id]
	if !changed {
		r = held.get(id)
	}
	return r != nil && !r.Forget && bytes.Equal(commandOf(r), e.Payload)
}

// fill gives an entry by name its payload, or returns the reason why it cannot. The payload aliases the record, whose bytes are
// never written again.
func (p *pool) fill(e *consensus.Entry) (fault string) {
	id := attemptOf(e)
	r := p.get(id)
	if r == nil {
		return fmt.Sprintf("the payload of entry %v is that of record %x, which the segment does not hold there",
			e.Position(), id[:])
	}
	if e.Payload = commandOf(r); e.Payload == nil {
		return fmt.Sprintf("the payload of entry %v is that of record %x, which holds none", e.Position(), id[:])
	}
	return ""
}
