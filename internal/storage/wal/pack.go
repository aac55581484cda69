package wal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

const (
	minPackedBytes = 512      // fewer items save no page of the disk
	maxPackedBytes = 16 << 20 // of items in a packed record: so much is allocated to read one

	keptBufferBytes = 8 << 20 // a larger buffer is given back after use
)

// A packed record has one item of kind packed, which is the S2 block of what the items of the record would be. The crc of the
// record is that of the bytes in the file, so nothing is unpacked that the disk has damaged.

var errPacked = errors.New("packed items do not unpack")

// packer packs records. Its buffer serves all of them.
type packer struct {
	least  int // bytes of items
	buf    []byte
	misses int // records in a row that did not become smaller
	skip   int // so many of the next ones are not tried
}

// pack returns the packed form of record, which holds its items behind room for a head, or record if there is nothing to gain.
// What it returns is valid until the next call.
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
		// Values that are compressed or encrypted already come in long rows.
		p.misses = min(p.misses+1, maxSkip)
		p.skip = p.misses
		return record
	}
	p.misses = 0
	p.buf[recordHeaderBytes] = byte(itemPacked)
	return p.buf[:head+len(block)]
}

// maxSkip bounds how many records are written as they are before the next one is tried.
const maxSkip = 16

func (p *packer) shrink() {
	if cap(p.buf) > keptBufferBytes {
		p.buf = nil
	}
}

// unpack returns the items of a record, which are what it holds unless they are packed. What it returns for those is not
// written again; else it aliases what it was given.
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
