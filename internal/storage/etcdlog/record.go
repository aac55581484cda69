package etcdlog

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/internal/consensus"
)

// Log is what a log says.
type Log struct {
	Member   uint64 // whose log it is
	Cluster  uint64
	Snapshot consensus.Index // the newest snapshot that the log names
	Last     consensus.Index // the last entry
	// Missing are the entries after the given index that change keys, leases, users or members, committed or not: etcd may
	// have acknowledged them before the log said that they were committed.
	Missing int
}

// Kinds of records.
const (
	kindMetadata = 1
	kindEntry    = 2
	kindState    = 3
	kindCRC      = 4
	kindSnapshot = 5
)

type reader struct {
	after   consensus.Index
	crc     uint32
	begun   bool // crc counts
	log     Log
	matters []bool // of the entries after after
}

// record takes one record that matches the CRC.
func (r *reader) record(kind int64, data []byte) error {
	switch kind {
	case kindMetadata:
		r.log.Member, r.log.Cluster = number(data, 1), number(data, 2)
	case kindEntry:
		return r.entry(data)
	case kindSnapshot:
		r.log.Snapshot = max(r.log.Snapshot, consensus.Index(number(data, 1)))
	case kindState:
	default:
		return fmt.Errorf("%w: a record of kind %d", ErrDamaged, kind)
	}
	return nil
}

// entry takes a raft entry: type=1, term=2, index=3, data=4.
func (r *reader) entry(data []byte) error {
	index := consensus.Index(number(data, 3))
	if index == 0 {
		return fmt.Errorf("%w: an entry without an index", ErrDamaged)
	}
	r.log.Last = index // a shorter log replaces a longer one
	if index <= r.after {
		r.matters = nil
		return nil
	}
	at := index - r.after - 1
	if at > consensus.Index(len(r.matters)) {
		return fmt.Errorf("%w: entry %d comes after entry %d", ErrDamaged, index, int(r.after)+len(r.matters))
	}
	r.matters = append(r.matters[:at], matters(number(data, 1), bytesField(data, 4)))
	return nil
}

// idle are the fields of etcd's InternalRaftRequest that change nothing a database is used for here: ids, reads, compactions,
// alarms, checkpoints of leases, logins, and what members say of themselves.
var idle = map[protowire.Number]bool{
	1: true, 100: true, 3: true, 7: true, 10: true, 11: true, 1012: true, 1013: true, 1102: true, 1106: true, 1107: true,
	1202: true, 1300: true, 1301: true, 1302: true,
}

// matters tells whether an entry changes keys, leases, users or members. An entry that does not decode does.
func matters(kind uint64, request []byte) bool {
	if kind != 0 {
		return true // a change of members
	}
	for len(request) > 0 {
		field, wire, n := protowire.ConsumeTag(request)
		if n < 0 || !idle[field] {
			return true
		}
		request = request[n:]
		if n = protowire.ConsumeFieldValue(field, wire, request); n < 0 {
			return true
		}
		request = request[n:]
	}
	return false
}
