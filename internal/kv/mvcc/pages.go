package mvcc

import (
	"bytes"
	"sync"

	"github.com/quorate/quorate/internal/kv"
)

// pages remembers the number of keys behind the last pages that were returned. A client that reads a long range in pages asks,
// at the revision of the first page, for the keys behind the last key it got; each answer has the number of those. Without this
// memory each page would count all keys that follow it. A range at a revision never changes, so a remembered count stays true;
// a read of a compacted revision is refused before it is used.
type pages struct {
	mu    sync.Mutex
	rests [maxPages]rest
	next  int // the oldest, which the next one replaces
}

// rest is a range that begins where a page ended.
type rest struct {
	rev      kv.Revision
	key, end []byte
	count    int64
}

// Bounds of the memory: 128 KiB in all.
const (
	maxPages   = 64
	maxRestLen = 2 << 10 // of key and end together
)

// find returns the number of keys of a range at rev, if it is remembered.
func (p *pages) find(op *kv.RangeOp, rev kv.Revision) (count int64, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.rests {
		r := &p.rests[i]
		if r.rev == rev && bytes.Equal(r.key, op.Key) && bytes.Equal(r.end, op.End) {
			return r.count, true
		}
	}
	return 0, false
}

// keep remembers the count behind last, the last key of a page of op at rev.
func (p *pages) keep(op *kv.RangeOp, rev kv.Revision, last []byte, count int64) {
	if len(last)+1+len(op.End) > maxRestLen {
		return
	}
	behind := *op
	behind.Key = append(bytes.Clone(last), 0)
	if _, known := p.find(&behind, rev); known {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rests[p.next] = rest{rev: rev, key: behind.Key, end: bytes.Clone(op.End), count: count}
	p.next = (p.next + 1) % maxPages
}
