package lease

import (
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/kv"
)

// Rows of the lease table, below a prefix that the state machine gives:
//
//	prefix 'g' id                ->  TTL in seconds, varint: granted
//	prefix 'k' id key            ->  (empty): key hangs on the lease
//
// An id is 8 bytes, big-endian, with its sign turned, so that rows stand in the order of ids, and every lease before
// the first key.
const (
	rowLease = 'g'
	rowKey   = 'k'

	signBit = 1 << 63
)

// Table is where the replicated half is written: the engine batch of the entry being applied.
type Table interface {
	Set(key, value []byte)
	DeleteRaw(key []byte)
}

// Rows is the lease table seen through one engine batch.
type Rows struct {
	Table  Table
	Prefix []byte
	buf    []byte
}

func (r *Rows) row(kind byte, id kv.LeaseID) []byte {
	r.buf = append(append(r.buf[:0], r.Prefix...), kind)
	r.buf = binary.BigEndian.AppendUint64(r.buf, uint64(id)^signBit)
	return r.buf
}

// Grant adds a lease. The caller has checked that the id is free.
func (l *Lessor) Grant(rows *Rows, id kv.LeaseID, ttlSeconds int64) {
	var value [binary.MaxVarintLen64]byte
	rows.Table.Set(rows.row(rowLease, id), value[:binary.PutVarint(value[:], ttlSeconds)])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant(id, ttlSeconds)
}

func (l *Lessor) grant(id kv.LeaseID, ttlSeconds int64) {
	invariant.True(l.leases[id] == nil, "lease %x is granted twice", int64(id))
	le := &lease{id: id, ttlSeconds: ttlSeconds, slot: l.all.length(), place: notDue}
	l.leases[id] = le
	l.all.push(le)
	l.size += leaseBytes
	if l.primary {
		le.granted = l.epoch
		l.fresh.push(le)
	}
}

// Revoke removes a lease on which no key hangs any more: the caller deletes the keys first, in the order of Keys, and
// each deletion detaches its key.
func (l *Lessor) Revoke(rows *Rows, id kv.LeaseID) {
	rows.Table.DeleteRaw(rows.row(rowLease, id))
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.leases[id]
	invariant.True(le != nil && le.keys.length() == 0, "lease %x is revoked with keys or without being there", int64(id))
	le.revoked = true
	delete(l.leases, id)
	last := *l.all.at(l.all.length() - 1)
	*l.all.at(le.slot), last.slot = last, le.slot
	l.all.pop()
	l.moved++
	l.size -= leaseBytes
	if l.primary && le.epoch == l.epoch && le.place != notDue {
		l.due.remove(le.place)
	}
}

// Attach hangs key on a lease.
func (l *Lessor) Attach(rows *Rows, id kv.LeaseID, key []byte) {
	row := append(rows.row(rowKey, id), key...)
	rows.buf = row
	rows.Table.Set(row, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attach(id, key)
}

func (l *Lessor) attach(id kv.LeaseID, key []byte) {
	le := l.leases[id]
	if le == nil {
		invariant.Broken("key %q is attached to lease %x, which is not there", key, int64(id))
	}
	if le.keys.add(string(key)) {
		l.size += keyBytes + int64(len(key))
	}
}

// Detach takes key off a lease.
func (l *Lessor) Detach(rows *Rows, id kv.LeaseID, key []byte) {
	row := append(rows.row(rowKey, id), key...)
	rows.buf = row
	rows.Table.DeleteRaw(row)
	l.mu.Lock()
	defer l.mu.Unlock()
	if le := l.leases[id]; le != nil && le.keys.remove(string(key)) {
		l.size -= keyBytes + int64(len(key))
	}
}

// Load takes one row of the table into a Lessor that is being opened; key is without the prefix. Rows come in the order
// of the engine.
func (l *Lessor) Load(key, value []byte) error {
	if len(key) < 9 {
		return fmt.Errorf("%w: key of %d bytes", ErrBadRow, len(key))
	}
	id := kv.LeaseID(binary.BigEndian.Uint64(key[1:]) ^ signBit)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch key[0] {
	case rowLease:
		ttl, n := binary.Varint(value)
		if n != len(value) || n <= 0 || len(key) != 9 || l.leases[id] != nil {
			return fmt.Errorf("%w: lease %x", ErrBadRow, int64(id))
		}
		l.grant(id, ttl)
	case rowKey:
		if l.leases[id] == nil {
			return fmt.Errorf("%w: key %q of a missing lease %x", ErrBadRow, key[9:], int64(id))
		}
		l.attach(id, key[9:])
	default:
		return fmt.Errorf("%w: kind %q", ErrBadRow, key[0])
	}
	return nil
}
