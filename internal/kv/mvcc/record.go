package mvcc

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/kv"
)

// A record is one version of a key:
//
//	flags (1) | uvarint mod-create | uvarint version | [varint lease] | value
//
// and flags alone for a tombstone. The revision is in the key.
const (
	recordPut       = 0
	recordTombstone = 1
	recordHasLease  = 2
)

// record is the decoded form; value aliases the encoded one.
type record struct {
	tombstone bool
	create    kv.Revision
	version   int64
	lease     kv.LeaseID
	value     []byte
	at        position // where it was found; not part of the encoding
}

// position is where one version lies, and how long its record is.
type position struct {
	rev kv.Rev
	row int
}

func appendRecord(dst []byte, r *record, mod kv.Revision) []byte {
	if r.tombstone {
		return append(dst, recordTombstone)
	}
	flags := byte(recordPut)
	if r.lease != 0 {
		flags |= recordHasLease
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(mod-r.create))
	dst = binary.AppendUvarint(dst, uint64(r.version))
	if r.lease != 0 {
		dst = binary.AppendVarint(dst, int64(r.lease))
	}
	return append(dst, r.value...)
}

// recordLen is the length of the record that appendRecord appends.
func recordLen(r *record, mod kv.Revision) int {
	if r.tombstone {
		return tombstoneLen
	}
	var numbers [3 * binary.MaxVarintLen64]byte
	bare := record{create: r.create, version: r.version, lease: r.lease}
	return len(appendRecord(numbers[:0], &bare, mod)) + len(r.value)
}

// tombstoneLen is the length of a tombstone, and of no other record.
const tombstoneLen = 1

// isTombstone reads only the flags.
func isTombstone(row []byte) bool { return len(row) > 0 && row[0]&recordTombstone != 0 }

func decodeRecord(row []byte, mod kv.Revision) (record, error) {
	if len(row) == 0 || row[0]&^(recordTombstone|recordHasLease) != 0 {
		return record{}, ErrCorruptRow
	}
	if row[0] == recordTombstone {
		if len(row) != 1 {
			return record{}, ErrCorruptRow
		}
		return record{tombstone: true}, nil
	}
	if row[0]&recordTombstone != 0 {
		return record{}, ErrCorruptRow
	}
	var r record
	rest := row[1:]
	age, n := binary.Uvarint(rest)
	if n <= 0 || age > uint64(mod) {
		return record{}, ErrCorruptRow
	}
	r.create = mod - kv.Revision(age)
	rest = rest[n:]
	version, n := binary.Uvarint(rest)
	if n <= 0 || version > 1<<63-1 {
		return record{}, ErrCorruptRow
	}
	r.version = int64(version)
	rest = rest[n:]
	if row[0]&recordHasLease != 0 {
		lease, n := binary.Varint(rest)
		if n <= 0 {
			return record{}, ErrCorruptRow
		}
		r.lease = kv.LeaseID(lease)
		rest = rest[n:]
	}
	r.value = rest
	return r, nil
}

// bareValue is what is kept of a value that is not copied.
type bareValue struct {
	sum  uint64
	size uint32
}
