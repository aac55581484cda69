package mvcc

import (
	"bytes"

	"github.com/quorate/quorate/internal/kv"
)

// Rows takes the pairs of an answer, so that each value is copied once on its way from the store to the wire.
type Rows interface {
	// Add takes the next pair, whose key and value are valid until it returns. An error ends the read.
	Add(pair *kv.KeyValue) error
	// Reset forgets what came before: the read begins again, at a newer revision.
	Reset()
}

// Page is an answer whose pairs went to Rows.
type Page struct {
	Result   kv.RangeResult // its pairs are here only if the range is of one key, which may be shared with the cache
	Given    int64          // how many pairs went to Rows
	Last     []byte         // the key of the last of them, if there are more
	Revision kv.Revision    // the published one, also with an error
}

// RangeInto is Range whose pairs go to rows. What it keeps beside, to sort it, it takes from account.
func (s *Store) RangeInto(op *kv.RangeOp, account kv.Account, rows Rows) (Page, error) {
	return s.readInto(op, true, account, rows)
}

// RangeIntoUncounted is RangeUncounted whose pairs go to rows.
func (s *Store) RangeIntoUncounted(op *kv.RangeOp, account kv.Account, rows Rows) (Page, error) {
	return s.readInto(op, false, account, rows)
}

func (s *Store) readInto(op *kv.RangeOp, counted bool, account kv.Account, rows Rows) (page Page, err error) {
	current, err := s.atRevision(op.Revision, func(rev kv.Revision) error {
		rows.Reset()
		page, err = s.rangeAt(op, rev, counted, account, rows)
		return err
	})
	page.Revision = current
	return page, err
}

// given is what a collector knows of pairs that it gave away.
type given struct {
	rows  Rows
	pair  kv.KeyValue // that is being given
	count int64
	more  bool
	last  []byte // the key at the limit
}

// give has the collector give away what it finds: at once if that comes in the order that is asked for.
func (c *collector) give(rows Rows) {
	if c.rows = rows; rows != nil && byKey(c.op) {
		c.given = &given{rows: rows}
		c.keep = min(c.keep, c.op.Limit)
	}
}

func (g *given) add(op *kv.RangeOp, key []byte, rec *record, mod kv.Revision) error {
	if op.Limit > 0 && g.count == op.Limit {
		g.more = true
		return nil
	}
	if g.count++; g.count == op.Limit {
		g.last = bytes.Clone(key)
	}
	g.pair = kv.KeyValue{Key: key, CreateRevision: rec.create, ModRevision: mod, Version: rec.version}
	if !op.KeysOnly { // what strip leaves
		g.pair.Value, g.pair.Lease = rec.value, rec.lease
	}
	return g.rows.Add(&g.pair)
}

// leave takes note that there are keys beyond the limit.
func (g *given) leave() {
	if g != nil {
		g.more = true
	}
}

// page walks over the cursor and closes it.
func (c *collector) page(from cursor) (Page, error) {
	err := c.walk(from)
	if closeErr := from.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return Page{}, err
	}
	if g := c.given; g != nil {
		page := Page{Result: kv.RangeResult{Count: c.total, More: g.more}, Given: g.count}
		if g.more {
			page.Last = g.last
		}
		return page, nil
	}
	page := Page{Result: c.result()}
	if page.Given = int64(len(page.Result.KVs)); page.Result.More {
		page.Last = page.Result.KVs[page.Given-1].Key
	}
	if c.rows == nil {
		return page, nil
	}
	for i := range page.Result.KVs {
		if err := c.rows.Add(&page.Result.KVs[i]); err != nil {
			return Page{}, err
		}
	}
	page.Result.KVs = nil
	return page, nil
}
