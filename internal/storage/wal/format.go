package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/atrest"
)

const (
	formatVersion = 1
	sealedVersion = 2 // of a segment whose records are sealed

	headerBytes       = 72      // of a segment
	sealedHeaderBytes = 120     // of one of sealedVersion
	recordHeaderBytes = 16      // of a record
	alignBytes        = 8       // records begin at multiples of it, so a search after damage has few places to try
	maxRecordBytes    = 1 << 30 // payload of one record
)

// headerMagic begins every segment.
var headerMagic = [8]byte{'Q', 'U', 'O', 'R', 'W', 'A', 'L', '\n'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Identity is the cluster, the member and the directory of a log. The caller of Open checks whether it is the right one.
type Identity = consensus.Identity

// StorageID names one data directory for ever.
type StorageID = consensus.StorageID

// header is the head of a segment. Integers are little endian.
//
// sealed is the length of the segment before, final because a segment is synced before its successor gets its name: a segment
// that ends earlier was damaged. crc is the CRC32C of the 68 bytes before it. The epoch of the identity is not here but in the
// carried state, since it changes.
//
// A segment whose records are sealed has version 2, and, from 64 on:
//
// The key of its records is derived from the data key, the salt, which is drawn for each use of a file, and all of the head
// before the salt. A record holds its sealed items in the place of items; everything else is as in version 1. So it can be told
// without a key where the log ends.
type header struct {
	identity Identity
	number   uint64
	sealed   int64
	key      *keyed // nil: version 1
}

// keyed is what a head says about the key of its segment.
type keyed struct {
	id   atrest.KeyID
	salt [atrest.SaltBytes]byte
}

// length is that of the head.
func (h *header) length() int64 {
	if h.key != nil {
		return sealedHeaderBytes
	}
	return headerBytes
}

// box returns the box of the records; nil if they are not sealed. The error is ErrPlain or ErrEncrypted of package atrest if
// keys and log do not belong together.
func (h *header) box(keys *atrest.Ring) (*atrest.Box, error) {
	switch {
	case h.key == nil && keys == nil:
		return nil, nil
	case h.key == nil:
		return nil, atrest.ErrPlain
	case keys == nil:
		return nil, atrest.ErrEncrypted
	}
	key, err := keys.Find(h.key.id)
	if err != nil {
		return nil, err
	}
	return key.Box(h.key.salt, appendHeader(nil, h)[:boundBytes]), nil
}

// boundBytes of a head are what its records are bound to: all before the salt.
const boundBytes = 80

func appendHeader(dst []byte, h *header) []byte {
	start := len(dst)
	version := uint32(formatVersion)
	if h.key != nil {
		version = sealedVersion
	}
	dst = append(dst, headerMagic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.identity.Cluster))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.identity.Member))
	dst = append(dst, h.identity.Storage[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, h.number)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.sealed))
	if h.key != nil {
		dst = append(append(dst, h.key.id[:]...), h.key.salt[:]...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

var errDamagedHeader = errors.New("segment header is damaged")

// decodeHeader checks the version before the checksum: a newer version may have its checksum elsewhere.
func decodeHeader(src []byte) (header, error) {
	if len(src) < 12 || [8]byte(src[:8]) != headerMagic {
		return header{}, errDamagedHeader
	}
	length, version := headerBytes, binary.LittleEndian.Uint32(src[8:])
	switch {
	case version > sealedVersion:
		return header{}, fmt.Errorf("%w: format %d, this one reads %d", ErrNewerVersion, version, sealedVersion)
	case version < formatVersion:
		return header{}, errDamagedHeader
	case version == sealedVersion:
		length = sealedHeaderBytes
	}
	if len(src) < length ||
		crc32.Checksum(src[:length-4], castagnoli) != binary.LittleEndian.Uint32(src[length-4:]) {
		return header{}, errDamagedHeader
	}
	h := header{
		identity: Identity{
			Cluster: consensus.ClusterID(binary.LittleEndian.Uint64(src[16:])),
			Member:  consensus.MemberID(binary.LittleEndian.Uint64(src[24:])),
			Storage: StorageID(src[32:48]),
		},
		number: binary.LittleEndian.Uint64(src[48:]),
		sealed: int64(binary.LittleEndian.Uint64(src[56:])),
	}
	if version == sealedVersion {
		h.key = &keyed{id: atrest.KeyID(src[64:80]), salt: [atrest.SaltBytes]byte(src[80:112])}
	}
	return h, nil
}

// seed starts every checksum inside a segment. Numbers differ in 32 adjacent bits, which a CRC32 always tells apart.
func (h *header) seed() uint32 {
	var b [24]byte
	copy(b[:16], h.identity.Storage[:])
	binary.LittleEndian.PutUint64(b[16:], h.number)
	return crc32.Checksum(b[:], castagnoli)
}

// recordHeader is the head of a record.
//
// crc is the CRC32C of the items. stamp is that of length, durable, crc and the record's own offset. Both start from the seed
// of the segment, so a record is live in one file at one place only. durable is the length of this segment that was known to be
// on the disk when the record was written: an invalid record before it is damage, one after it may be a write that the power
// cut short.
type recordHeader struct {
	stamp, length, durable, crc uint32
}

func decodeRecordHeader(src []byte) recordHeader {
	return recordHeader{
		stamp:   binary.LittleEndian.Uint32(src[0:]),
		length:  binary.LittleEndian.Uint32(src[4:]),
		durable: binary.LittleEndian.Uint32(src[8:]),
		crc:     binary.LittleEndian.Uint32(src[12:]),
	}
}

// plausible is the cheap test that zeros and most foreign bytes fail.
func (h recordHeader) plausible(offset int64) bool {
	return h.length > 0 && h.length <= maxRecordBytes && int64(h.durable) <= offset && h.durable >= headerBytes
}

// expected is the right stamp of a record at offset.
func (h recordHeader) expected(seed uint32, offset int64) uint32 {
	var b [20]byte
	binary.LittleEndian.PutUint32(b[0:], h.length)
	binary.LittleEndian.PutUint32(b[4:], h.durable)
	binary.LittleEndian.PutUint32(b[8:], h.crc)
	binary.LittleEndian.PutUint64(b[12:], uint64(offset))
	return crc32.Update(seed, castagnoli, b[:])
}

func (h recordHeader) stamped(seed uint32, offset int64) bool {
	return h.plausible(offset) && h.stamp == h.expected(seed, offset)
}

func crcOf(seed uint32, items []byte) uint32 { return crc32.Update(seed, castagnoli, items) }

// sealRecord sets the head of record, which holds its items already.
func sealRecord(record []byte, seed uint32, offset, durable int64) {
	items := record[recordHeaderBytes:]
	h := recordHeader{
		length:  uint32(len(items)),
		durable: uint32(durable),
		crc:     crcOf(seed, items),
	}
	h.stamp = h.expected(seed, offset)
	binary.LittleEndian.PutUint32(record[0:], h.stamp)
	binary.LittleEndian.PutUint32(record[4:], h.length)
	binary.LittleEndian.PutUint32(record[8:], h.durable)
	binary.LittleEndian.PutUint32(record[12:], h.crc)
}

// recordSpan is the length in the file of a record with so many bytes of items.
func recordSpan(length int64) int64 { return align(recordHeaderBytes + length) }

func align(n int64) int64 { return (n + alignBytes - 1) &^ (alignBytes - 1) }
