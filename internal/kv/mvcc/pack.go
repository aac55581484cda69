package mvcc

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// A pack is a row with several changes, in their order. Its key is that of the last one, so that the first row which is not
// below a revision has the first change that is not below it:
//
//	changePack | uvarint last.main-first.main | uvarint first.sub | for each change:
//	    kind (1) | [uvarint distance] | [name of the version before] | uvarint length of the key | key
//
// A change is at the next revision, unless its kind has packSame (the next change of the same one) or packFar (the distance
// follows). The changes of a revision may be in several packs.
type pack struct {
	first, last kv.Rev
	entries     []byte

	key, row []byte // buffers of flush
}

const (
	changePack = 1 // the form of the row

	packSame = 8  // added to the kind of a change
	packFar  = 16 // added to the kind of a change
)

// maxPackBytes is below the length from which on the engine stores values apart, so that reading changes opens no file of
// values. Only the change of a long key exceeds it, alone.
const maxPackBytes = 960

func (p *pack) empty() bool { return len(p.entries) == 0 }

func (p *pack) reset() { p.entries = p.entries[:0] }

// takes reports whether the next change may be added.
func (p *pack) takes(c *change, rev kv.Rev) bool {
	const most = 48 // all but the key
	if p.empty() {
		return true
	}
	follows := rev == kv.Rev{Main: p.last.Main, Sub: p.last.Sub + 1} || rev.Main > p.last.Main && rev.Sub == 0
	return follows && len(p.entries)+len(c.user) <= maxPackBytes-most
}

func (p *pack) add(c *change, rev kv.Rev) {
	kind, far := c.kind, rev.Main-p.last.Main
	switch {
	case p.empty():
		p.first, far = rev, 1
	case far == 0:
		kind |= packSame
	case far > 1:
		kind |= packFar
	}
	if c.named {
		kind |= changeNamed
	}
	p.entries = append(p.entries, kind)
	if far > 1 {
		p.entries = binary.AppendUvarint(p.entries, uint64(far))
	}
	if c.named {
		p.entries = appendBefore(p.entries, c, rev)
	}
	p.entries = binary.AppendUvarint(p.entries, uint64(len(c.user)))
	p.entries = append(p.entries, c.user...)
	p.last = rev
}

// append appends the value of the row.
func (p *pack) append(dst []byte) []byte {
	dst = append(dst, changePack)
	dst = binary.AppendUvarint(dst, uint64(p.last.Main-p.first.Main))
	dst = binary.AppendUvarint(dst, uint64(p.first.Sub))
	return append(dst, p.entries...)
}

// flush puts the row into a batch, if there are changes, and empties the pack.
func (p *pack) flush(batch engine.Batch) {
	if p.empty() {
		return
	}
	p.key = appendChangeKey(p.key[:0], p.last)
	p.row = p.append(p.row[:0])
	batch.Set(p.key, p.row)
	p.reset()
}

// packReader reads the changes of a pack in order.
type packReader struct {
	rest  []byte
	at    kv.Rev // of the change that was read last
	last  kv.Rev // of the last change
	begun bool   // a change was read
}

// openPack begins to read the row of the pack whose last change is at last.
func openPack(row []byte, last kv.Rev) (r packReader, ok bool) {
	if len(row) == 0 || row[0] != changePack {
		return r, false
	}
	length, n := binary.Uvarint(row[1:])
	if n <= 0 || length > uint64(last.Main) {
		return r, false
	}
	row = row[1+n:]
	sub, n := binary.Uvarint(row)
	if n <= 0 || sub > maxSub || n == len(row) {
		return r, false
	}
	return packReader{rest: row[n:], at: kv.Rev{Main: last.Main - kv.Revision(length), Sub: int64(sub)}, last: last}, true
}

// exhausted reports whether all changes were read.
func (r *packReader) exhausted() bool { return len(r.rest) == 0 }

// next reads a change, whose revision is at then.
func (r *packReader) next() (c change, ok bool) {
	kind, rest, before := r.rest[0], r.rest[1:], r.at
	switch place := kind & (packSame | packFar); {
	case !r.begun:
		if ok = place == 0; !ok {
			return c, false
		}
	case place == packSame:
		r.at.Sub++
	case place == packFar:
		far, n := binary.Uvarint(rest)
		if n <= 0 || far < 2 || far > uint64(r.last.Main) {
			return c, false
		}
		r.at, rest = kv.Rev{Main: r.at.Main + kv.Revision(far)}, rest[n:]
	case place == 0:
		r.at = kv.Rev{Main: r.at.Main + 1}
	default:
		return c, false
	}
	if r.at.Sub > maxSub || r.begun && !later(r.at, before) { // it overflowed
		return c, false
	}
	c.kind, c.named = kind&^(packSame|packFar|changeNamed), kind&changeNamed != 0
	if c.kind > changeDelete || c.named && c.kind == changeCreate || later(r.at, r.last) {
		return c, false
	}
	if c.named {
		if rest, ok = c.decodeBefore(rest, r.at); !ok {
			return c, false
		}
	}
	length, n := binary.Uvarint(rest)
	if n <= 0 || length > uint64(len(rest)-n) {
		return c, false
	}
	c.user, r.rest, r.begun = rest[n:n+int(length)], rest[n+int(length):], true
	return c, !r.exhausted() || r.at == r.last
}
