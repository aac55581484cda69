package lease

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/kv"
)

// Grant adds a lease. The caller has checked that the id is free.
func (l *Lessor) Grant(rows *Rows, id kv.LeaseID, ttlSeconds int64) {
	var value [binary.MaxVarintLen64]byte
	rows.Table.Set(rows.row(rowLease, id), value[:binary.PutVarint(value[:], ttlSeconds)])
	rows.anew(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant(id, ttlSeconds)
}

func (l *Lessor) grant(id kv.LeaseID, ttlSeconds int64) {
	invariant.True(l.leases[id] == nil, "lease %x is granted twice", int64(id))
	le := &lease{id: id, ttlSeconds: ttlSeconds, slot: l.all.length(), place: notDue}
	l.leases[id] = le
	l.all.push(le)
	l.size += EachBytes
	if l.primary {
		le.granted = l.epoch
		l.fresh.push(le)
	}
}

// Revoke removes a lease without keys: the caller deletes the keys first, in the order of VisitKeys, and drops each of them.
func (l *Lessor) Revoke(rows *Rows, id kv.LeaseID) {
	rows.Table.DeleteRaw(rows.row(rowLease, id))
	rows.anew(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.leases[id]
	invariant.True(le != nil && le.keys == 0, "lease %x is revoked with keys or without being there", int64(id))
	le.revoked = true
	delete(l.leases, id)
	last := *l.all.at(l.all.length() - 1)
	*l.all.at(le.slot), last.slot = last, le.slot
	l.all.pop()
	l.moved++
	l.size -= EachBytes
	if l.primary && le.epoch == l.epoch && le.place != notDue {
		l.due.remove(le.place)
	}
}

// End marks a lease that has lost its keys up to last, in the order of VisitKeys, and has more: it cannot be renewed, listed or
// given keys any more, and is due at once, under every leader from now on.
func (l *Lessor) End(rows *Rows, id kv.LeaseID, last []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.leases[id]
	invariant.True(le != nil && le.keys > 0, "lease %x ends in parts without being there, or without keys", int64(id))
	rows.end(id, last)
	if !le.ending {
		le.ending, le.deadline = true, time.Time{}
		value := binary.AppendVarint(nil, le.ttlSeconds)
		rows.Table.Set(rows.row(rowLease, id), append(value, markEnding))
	}
	if l.primary && le.epoch == l.epoch && le.place != notDue {
		l.due.at(le.place).at = le.deadline // its last naming: other due leases get their turn
		l.due.up(le.place)
		l.due.down(le.place)
	}
}

// Attach attaches key, which is attached to no lease, to one.
func (l *Lessor) Attach(rows *Rows, id kv.LeaseID, key []byte) {
	row := append(rows.row(rowKey, id), key...)
	rows.buf = row
	rows.Table.Set(row, nil)
	rows.note(id, key, true)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attach(id, len(key))
}

func (l *Lessor) attach(id kv.LeaseID, keyLen int) {
	le := l.leases[id]
	if le == nil {
		invariant.Broken("a key of %d bytes is attached to lease %x, which is not there", keyLen, int64(id))
	}
	le.keys++
	le.keysLen += int64(keyLen)
	l.size += keyBytes + int64(keyLen)
}

// Detach detaches key from a lease, if it is attached to it. The error is an operating error.
func (l *Lessor) Detach(rows *Rows, id kv.LeaseID, key []byte) error {
	if !l.Exists(id) {
		return nil
	}
	row := append(rows.row(rowKey, id), key...)
	rows.buf = row
	if hangs, err := rows.hangs(id, key, row); err != nil || !hangs {
		return err
	}
	rows.note(id, key, false)
	l.Drop(rows, id, key)
	return nil
}

// Drop detaches key, which VisitKeys visited, from a lease that is about to be revoked. It needs no memory.
func (l *Lessor) Drop(rows *Rows, id kv.LeaseID, key []byte) {
	row := append(rows.row(rowKey, id), key...)
	rows.buf = row
	rows.Table.DeleteRaw(row)
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.leases[id]
	le.keys--
	le.keysLen -= int64(len(key))
	l.size -= keyBytes + int64(len(key))
}

// Load adds one row of the table to a Lessor that is being opened; key is without the prefix. Rows come in the order of the
// engine.
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
		ending := n > 0 && len(value) == n+1 && value[n] == markEnding
		if n <= 0 || n != len(value) && !ending || len(key) != 9 || l.leases[id] != nil {
			return fmt.Errorf("%w: lease %x", ErrBadRow, int64(id))
		}
		l.grant(id, ttl)
		l.leases[id].ending = ending
	case rowKey:
		if l.leases[id] == nil {
			return fmt.Errorf("%w: key %q of a missing lease %x", ErrBadRow, key[9:], int64(id))
		}
		l.attach(id, len(key)-9)
	default:
		return fmt.Errorf("%w: kind %q", ErrBadRow, key[0])
	}
	return nil
}
