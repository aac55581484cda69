package apply

import (
	"encoding/binary"
	"fmt"
)

// A pack is the results of the proposals of one session in one batch of entries: a row instead of one for each of them. Its key
// has the least sequence in it. All of them are of one chunk (seenPerChunk), so that a search for one reads no more packs than
// a chunk has sequences, in whatever order a client numbers its proposals.
//
//	sequence - least (uvarint) | length (uvarint) | result, for each in the order of the log
type pack struct {
	least   uint64
	entries []packed
	bytes   []byte // their results
}

// packed is a result in a pack, which begins where the one before ends.
type packed struct {
	sequence uint64
	end      int
}

// maxPackBytes ends a pack; a pack below it takes one more result.
const maxPackBytes = 32 << 10

const packKeyLen = 1 + 4 + 8

func appendPackRow(dst []byte, slot uint32, least uint64) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, tablePack), slot)
	return binary.BigEndian.AppendUint64(dst, least)
}

// packBounds are the bounds of all packs of one slot.
func packBounds(slot uint32) (lower, upper []byte) {
	lower = binary.BigEndian.AppendUint32([]byte{tablePack}, slot)
	if slot == 1<<32-1 {
		return lower, []byte{tablePack + 1}
	}
	return lower, binary.BigEndian.AppendUint32([]byte{tablePack}, slot+1)
}

func (p *pack) add(sequence uint64, result []byte) {
	if len(p.entries) == 0 || sequence < p.least {
		p.least = sequence
	}
	p.bytes = append(p.bytes, result...)
	p.entries = append(p.entries, packed{sequence, len(p.bytes)})
}

func (p *pack) find(sequence uint64) (result []byte, found bool) {
	begin := 0
	for _, e := range p.entries {
		if e.sequence == sequence {
			return p.bytes[begin:e.end], true
		}
		begin = e.end
	}
	return nil, false
}

// append appends the value of the row.
func (p *pack) append(dst []byte) []byte {
	begin := 0
	for _, e := range p.entries {
		dst = binary.AppendUvarint(dst, e.sequence-p.least)
		dst = binary.AppendUvarint(dst, uint64(e.end-begin))
		dst = append(dst, p.bytes[begin:e.end]...)
		begin = e.end
	}
	return dst
}

// eachPacked calls visit for every result in the row of a pack.
func eachPacked(least uint64, row []byte, visit func(sequence uint64, result []byte)) error {
	for at := row; len(at) > 0; {
		ahead, n := binary.Uvarint(at)
		if n <= 0 || least+ahead < least {
			return fmt.Errorf("%w: results %x", ErrCorruptRow, row)
		}
		length, m := binary.Uvarint(at[n:])
		if m <= 0 || length > uint64(len(at)-n-m) {
			return fmt.Errorf("%w: results %x", ErrCorruptRow, row)
		}
		at = at[n+m:]
		visit(least+ahead, at[:length])
		at = at[length:]
	}
	return nil
}

func decodePackKey(key []byte) (slot uint32, least uint64, err error) {
	if len(key) != packKeyLen {
		return 0, 0, fmt.Errorf("%w: results at %x", ErrCorruptRow, key)
	}
	return binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint64(key[5:]), nil
}
