package mvcc_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// rows keeps copies of the pairs that it gets.
type rows struct {
	kvs    []kv.KeyValue
	resets int
	onAdd  func() error
}

func (r *rows) Reset() {
	r.kvs = nil
	r.resets++
}

func (r *rows) Append(pair *kv.KeyValue) error {
	own := *pair
	own.Key, own.Value = cloned(pair.Key), cloned(pair.Value)
	r.kvs = append(r.kvs, own)
	if r.onAdd != nil {
		return r.onAdd()
	}
	return nil
}

func cloned(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b)
}

// rangeInto is Range by means of RangeInto.
func rangeInto(t *testing.T, s *mvcc.Store, op *kv.RangeOp) (kv.RangeResult, kv.Revision, error) {
	t.Helper()
	var r rows
	page, err := s.RangeInto(op, true, unlimited{}, &r)
	if err != nil {
		return kv.RangeResult{}, page.Revision, err
	}
	last := page.Last
	if n := len(r.kvs); page.Result.More != (last != nil) || last != nil && !bytes.Equal(last, r.kvs[n-1].Key) || page.Given != int64(n) {
		t.Errorf("range %+v: last %q and %d pairs of %d, more: %v", op, last, page.Given, n, page.Result.More)
	}
	if len(op.End) > 0 {
		page.Result.KVs = r.kvs
	}
	return page.Result, page.Revision, nil
}

// Ensure that a read that begins again, since its revision was compacted meanwhile, resets the rows that it passed on.
func TestStore_RangeInto_beginsAgain(t *testing.T) {
	s := newStore(t, openers[0])
	const keys = 100 // several intervals of the census
	for i := range keys {
		put(t, s, fmt.Sprintf("k%02d", i), "old", 0)
	}
	for done := false; !done; {
		var err error
		if done, err = s.CountStep(); err != nil {
			t.Fatal(err)
		}
	}
	r := rows{}
	r.onAdd = func() error {
		if len(r.kvs) == 2 && r.resets == 1 {
			put(t, s, "k00", "new", 0)
			if err := compact(t, s, s.Revision()); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	}
	page, err := s.RangeInto(&kv.RangeOp{Key: []byte("k01"), End: []byte("k92"), Limit: 2}, true, unlimited{}, &r)
	if err != nil || r.resets != 2 || len(r.kvs) != 2 || page.Given != 2 || page.Result.Count != 91 || !page.Result.More {
		t.Errorf("%v, %d attempts, %d pairs, %+v", err, r.resets, len(r.kvs), page)
	}
}

// Ensure that the last key of a page is the caller's own: RangeStream appends to it, and while it does so others read the same keys
// (etcd 3.7.3 fixes that: there the room behind the key was the index's).
func TestStore_RangeInto_lastIsTheCallers(t *testing.T) {
	for _, open := range openers {
		s := newStore(t, open)
		for i := range 20 {
			put(t, s, fmt.Sprintf("k%02d", i), "value", 0)
		}
		for _, keysOnly := range []bool{false, true} {
			op := kv.RangeOp{Key: []byte("k"), End: []byte("l"), Limit: 7, KeysOnly: keysOnly}
			want, _, err := rangeInto(t, s, &op)
			if err != nil {
				t.Fatal(err)
			}
			page, err := s.RangeInto(&op, true, unlimited{}, &rows{})
			if err != nil || len(page.Last) == 0 {
				t.Fatalf("%+v, %v", page, err)
			}
			room := page.Last[:cap(page.Last)]
			for i := range room {
				room[i] = 0xff
			}
			got, _, err := rangeInto(t, s, &op)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("keys only %v: got %+v, %v; want %+v", keysOnly, got, err, want)
			}
		}
	}
}

// Ensure that an error of Rows ends a read.
func TestStore_RangeInto_refused(t *testing.T) {
	s := newStore(t, openers[1])
	for i := range 5 {
		put(t, s, fmt.Sprintf("k%d", i), "v", 0)
	}
	for _, order := range []kv.SortOrder{kv.SortAscend, kv.SortDescend} {
		r := rows{onAdd: func() error { return kv.ErrAnswersBusy }}
		_, err := s.RangeInto(&kv.RangeOp{Key: []byte("k"), End: []byte("l"), Order: order}, true, nil, &r)
		if !errors.Is(err, kv.ErrAnswersBusy) || len(r.kvs) != 1 {
			t.Errorf("order %d: %v after %d pairs", order, err, len(r.kvs))
		}
	}
}
