package wal

import (
	"math"

	"github.com/quorate/quorate/internal/consensus"
)

// Sealed builds a first segment with valid checksums around any items, for tests of the code behind the checksums.
func Sealed(identity Identity, items ...[]byte) []byte {
	return SealedAfter(identity, 1, nil, items...)
}

// SealedAfter builds the segment that follows the one before.
func SealedAfter(identity Identity, number uint64, before []byte, items ...[]byte) []byte {
	h := header{identity: identity, number: number, sealed: int64(len(before))}
	segment := appendHeader(nil, &h)
	for _, bytes := range items {
		offset := int64(len(segment))
		record := append(make([]byte, recordHeaderBytes), bytes...)
		sealRecord(record, h.seed(), offset, offset)
		segment = append(segment, record...)
		segment = append(segment, make([]byte, align(int64(len(segment)))-int64(len(segment)))...)
	}
	return segment
}

// AsTheyAre is a value of Options.PackFrom with which no record is packed.
const AsTheyAre = math.MaxInt

// Packing returns the part of Append that turns these entries into a record, encoding and checksum included. It returns the
// number of bytes written.
func Packing(entries []consensus.Entry, packed bool) func() int {
	var c encoder
	var buf []byte
	p, batches := packer{least: AsTheyAre}, []Batch{{Entries: entries}}
	if packed {
		p.least = minPackedBytes
	}
	return func() int {
		buf = c.append(append(buf[:0], make([]byte, recordHeaderBytes)...), batches, new(pool))
		record := p.pack(buf)
		sealRecord(record, 1, headerBytes, headerBytes)
		return len(record)
	}
}

// Packed returns a packed item with this block.
func Packed(block []byte) []byte { return append([]byte{byte(itemPacked)}, block...) }

// MaxPackedBytes bounds the items of a packed record.
const MaxPackedBytes = maxPackedBytes

// Carried encodes the state that a segment of an empty log begins with.
func Carried() []byte { return CarriedTo(0) }

// CarriedTo is the state that a segment begins with whose log ends at an index.
func CarriedTo(last consensus.Index) []byte { return (&carried{last: last}).append(nil) }

// Items encodes batches as the first record of a log has them.
func Items(batches ...Batch) []byte { return new(encoder).append(nil, batches, new(pool)) }

// Encoder returns the encoding part of Append, checksum included, for a log that holds these records. It returns the number of
// bytes, and of entries by name.
func Encoder(held []WitnessRecord) func(...Batch) (bytes int, named uint64) {
	var c encoder
	var p pool
	for i := range held {
		p.take(&held[i])
	}
	var buf []byte
	return func(batches ...Batch) (bytes int, named uint64) {
		buf = c.append(append(buf[:0], make([]byte, recordHeaderBytes)...), batches, &p)
		sealRecord(buf, 1, headerBytes, headerBytes)
		return len(buf) - recordHeaderBytes, c.named
	}
}

// Named encodes an entry by name, whether its record exists or not.
func Named(e consensus.Entry) []byte { return consensus.AppendEntry([]byte{byte(itemNamed)}, &e) }

// Forge changes a byte of the items of the record at offset, and gives the record the sums of one that was written so.
func Forge(segment []byte, offset int64) {
	h, err := decodeHeader(segment)
	if err != nil {
		panic(err)
	}
	old := decodeRecordHeader(segment[offset:])
	record := segment[offset : offset+recordHeaderBytes+int64(old.length)]
	record[recordHeaderBytes+int64(old.length)/2] ^= 1
	sealRecord(record, h.seed(), offset, int64(old.durable))
}
