package wal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

const (
	minPackedBytes = 512      // packing fewer items saves no page of the disk
	maxPackedBytes = 16 << 20 // of items in a packed record: the allocation to read one

	keptBufferBytes = 8 << 20 // a larger buffer is freed after use
)

// A packed record has one item of kind packed, an S2 block of the record's items. The crc of the record covers the bytes in the
// file, so bytes that the disk has damaged are never unpacked.

var errPacked = errors.New("packed items do not unpack")

// packer packs records. It reuses its buffer.
type packer struct {
	least  int // bytes of items
	buf    []byte
	misses int // records in a row that did not become smaller
	skip   int // the number of next records that are not tried
}

// pack returns the packed form of record, which holds its items behind room for a head, or record if packing does not make it
// smaller. The result is valid until the next call.
func (p *packer) pack(record []byte) []byte {
	items := record[recordHeaderBytes:]
	if len(items) < p.least || len(items) > maxPackedBytes {
		return record
	}
	if p.skip > 0 {
		p.skip--
		return record
	}
	const head = recordHeaderBytes + 1
	room := head + s2.MaxEncodedLen(len(items))
	p.buf = slices.Grow(p.buf[:0], room+alignBytes)[:room]
	block := s2.Encode(p.buf[head:], items)
	if len(block) > len(items)-len(items)/8 {
		// Values that are compressed or encrypted already come in long runs.
		p.misses = min(p.misses+1, maxSkip)
		p.skip = p.misses
		return record
	}
	p.misses = 0
	p.buf[recordHeaderBytes] = byte(itemPacked)
	return p.buf[:head+len(block)]
}

// maxSkip bounds the records that are written unpacked before the next one is tried.
const maxSkip = 16

func (p *packer) shrink() {
	if cap(p.buf) > keptBufferBytes {
		p.buf = nil
	}
}

// unpack returns the items of a record, unpacked if they are packed. Unpacked items are not written again; others alias held.
func unpack(held []byte) (items []byte, packed bool, err error) {
	if len(held) == 0 || itemKind(held[0]) != itemPacked {
		return held, false, nil
	}
	length, err := s2.DecodedLen(held[1:])
	if err != nil || length <= 0 || length > maxPackedBytes {
		return nil, true, fmt.Errorf("%w: they claim %d bytes", errPacked, length)
	}
	if items, err = s2.Decode(nil, held[1:]); err != nil {
		return nil, true, fmt.Errorf("%w: %w", errPacked, err)
	}
	return items, true, nil
}
