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
//
// From feature level 2 on a pack says who made its changes. A list of authors comes before the changes, and a change has the
// author of the one before it, the first one the first author, unless its kind has packAuthor:
//
//	authoredPack | uvarint last.main-first.main | uvarint first.sub | number of authors (1) | authors | for each change:
//	    kind (1) | [uvarint distance] | [index of the author (1)] | [name of the version before] | ...
type pack struct {
	first, last kv.Rev
	entries     []byte
	authored    bool // it has the second form
	authors     authors

	key, row []byte // buffers of flush
}

const (
	changePack   = 1 // the form of the row
	authoredPack = 2

	packSame   = 8  // added to the kind of a change
	packFar    = 16 // added to the kind of a change
	packAuthor = 32 // added to the kind of a change, in the second form
)

// maxPackBytes is below the length from which on the engine stores values apart, so that reading changes opens no file of
// values. Only the change of a long key exceeds it, alone.
const maxPackBytes = 960

func (p *pack) empty() bool { return len(p.entries) == 0 }

func (p *pack) reset() {
	p.entries, p.authored = p.entries[:0], false
	p.authors.reset()
}

// takes reports whether the next change may be added.
func (p *pack) takes(c *change, rev kv.Rev) bool {
	const most = 48 // all but the key
	if p.empty() {
		return true
	}
	follows := rev == kv.Rev{Main: p.last.Main, Sub: p.last.Sub + 1} || rev.Main > p.last.Main && rev.Sub == 0
	if !follows || p.authored != (len(c.by) > 0) {
		return false
	}
	size := len(p.entries) + len(c.user)
	if p.authored {
		size += len(p.authors.list) + p.authors.grows(c.by)
	}
	return size <= maxPackBytes-most
}

func (p *pack) add(c *change, rev kv.Rev) {
	kind, far := c.kind, rev.Main-p.last.Main
	before := p.authors.at
	switch {
	case p.empty():
		p.first, far, p.authored = rev, 1, len(c.by) > 0
	case far == 0:
		kind |= packSame
	case far > 1:
		kind |= packFar
	}
	if c.named {
		kind |= changeNamed
	}
	if p.authored {
		if p.authors.note(c.by); p.authors.at != before {
			kind |= packAuthor
		}
	}
	p.entries = append(p.entries, kind)
	if far > 1 {
		p.entries = binary.AppendUvarint(p.entries, uint64(far))
	}
	if kind&packAuthor != 0 {
		p.entries = append(p.entries, byte(p.authors.at))
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
	form := byte(changePack)
	if p.authored {
		form = authoredPack
	}
	dst = binary.AppendUvarint(append(dst, form), uint64(p.last.Main-p.first.Main))
	dst = binary.AppendUvarint(dst, uint64(p.first.Sub))
	if p.authored {
		dst = append(append(dst, byte(p.authors.count)), p.authors.list...)
	}
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

	authored bool
	authors  authors // its list aliases the row
}

// openPack begins to read the row of the pack whose last change is at last.
func openPack(row []byte, last kv.Rev) (r packReader, ok bool) {
	if len(row) == 0 || row[0] != changePack && row[0] != authoredPack {
		return r, false
	}
	r.authored = row[0] == authoredPack
	length, n := binary.Uvarint(row[1:])
	if n <= 0 || length > uint64(last.Main) {
		return r, false
	}
	row = row[1+n:]
	sub, n := binary.Uvarint(row)
	if n <= 0 || sub > maxSub {
		return r, false
	}
	if row, ok = row[n:], true; r.authored {
		r.authors, row, ok = openAuthors(row)
	}
	r.rest, r.at, r.last = row, kv.Rev{Main: last.Main - kv.Revision(length), Sub: int64(sub)}, last
	return r, ok && len(row) > 0
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
	if r.authored && kind&packAuthor != 0 {
		if len(rest) == 0 || !r.authors.move(int(rest[0])) {
			return c, false
		}
		kind, rest = kind&^packAuthor, rest[1:]
	}
	c.kind, c.named, c.by = kind&^(packSame|packFar|changeNamed), kind&changeNamed != 0, r.authors.current()
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
