package mvcc_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// full is an account without room. It notes the bytes that were asked for, and how much memory was in use by then.
type full struct {
	asked     int
	allocated uint64
}

var errFull = errors.New("no room")

func (f *full) Take(n int) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.asked, f.allocated = f.asked+n, m.TotalAlloc
	return errFull
}

func (f *full) Walk(int) error { return nil }

func (f *full) Release() {}

// Ensure that a read that waits for room for a large value does not hold that value meanwhile.
func TestStore_RangeWithin_takesBeforeItReads(t *testing.T) {
	if testing.Short() {
		t.Skip("its calls come one after the other, and take long under the race detector")
	}
	const size = 8 << 20
	for _, o := range openers {
		s, eng := openStore(t, o, filestest.NewMem(), -1) // without a cache, which would share the value
		put(t, s, "large", string(bytes.Repeat([]byte{1}, size)), 0)
		for name, op := range map[string]kv.RangeOp{
			"now": {Key: []byte("large")}, "then": {Key: []byte("large"), Revision: 2},
			"of many": {Key: []byte("l"), End: []byte("m")},
		} {
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			var account full
			if _, _, err := s.RangeWithin(&op, &account); !errors.Is(err, errFull) || account.asked < size {
				t.Errorf("%s, %s: %v after %d bytes were asked for", o.name, name, err, account.asked)
			}
			if read := account.allocated - before.TotalAlloc; o.name == "mem" && read >= size {
				t.Errorf("%s, %s: %d bytes were allocated before there was room", o.name, name, read)
			}
			got, _, err := s.RangeWithin(&op, unlimited{})
			if err != nil || len(got.KVs) != 1 || len(got.KVs[0].Value) != size {
				t.Errorf("%s, %s: with room %d pairs, %v", o.name, name, len(got.KVs), err)
			}
		}
		filtered := kv.RangeOp{Key: []byte("large"), MinMod: 1 << 60}
		if got, _, err := s.RangeWithin(&filtered, &full{}); err != nil || got.Count != 1 || len(got.KVs) != 0 {
			t.Errorf("%s: filtered away, without room: %+v, %v", o.name, got, err)
		}
		keys := kv.RangeOp{Key: []byte("large"), KeysOnly: true}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, _, err := s.RangeWithin(&keys, unlimited{})
		then, err2 := s.After(2).Range(&keys, unlimited{})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; o.name == "mem" && n >= size || len(got.KVs) != 1 || len(then.KVs) != 1 || cmp.Or(err, err2) != nil {
			t.Errorf("%s: without values %d bytes, %v, %v, %v", o.name, n, got.KVs, then.KVs, cmp.Or(err, err2))
		}
		account := full{}
		if got, _, err := s.RangeWithin(&kv.RangeOp{Key: []byte("large"), CountOnly: true}, &account); err != nil || got.Count != 1 {
			t.Errorf("%s: counted %d, %v", o.name, got.Count, err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}

// weary is an account that ends a walk.
type weary struct {
	unlimited
	left int
}

var errWeary = errors.New("it is too far")

func (w *weary) Walk(n int) error {
	if w.left -= n; w.left < 0 {
		return errWeary
	}
	return nil
}

// Ensure that every walk over many keys, also over deleted ones and those with many versions, can be ended, and ends.
func TestStore_walks_end(t *testing.T) {
	const keys = 1000
	for _, o := range openers {
		s, eng := openStore(t, o, filestest.NewMem(), 1<<20)
		for i := range keys {
			put(t, s, fmt.Sprintf("gone/%04d", i), "v", 0)
			put(t, s, fmt.Sprintf("here/%04d", i), "v", 0)
		}
		w := s.Begin()
		w.BeginCommand()
		w.DeleteRange([]byte("gone/"), []byte("gone0"), nil)
		w.EndCommand()
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{"gone", "here"} {
			key, end := []byte(prefix+"/"), []byte(prefix+"0")
			old := kv.Revision(keys + 2)
			compare := &kv.Compare{Key: key, End: end, Target: kv.CompareMod, Result: kv.CompareGreater}
			for name, walk := range map[string]func(kv.Account) error{
				"filter": func(a kv.Account) error {
					_, _, err := s.RangeWithin(&kv.RangeOp{Key: key, End: end, MinMod: 1 << 60}, a)
					return err
				},
				"sort": func(a kv.Account) error {
					_, _, err := s.RangeWithin(&kv.RangeOp{Key: key, End: end, Target: kv.SortByValue, KeysOnly: true}, a)
					return err
				},
				"into rows": func(a kv.Account) error {
					_, err := s.RangeInto(&kv.RangeOp{Key: key, End: end, MinCreate: 1 << 60}, true, a,
						mvcc.RowsFunc(func(*kv.KeyValue) error { return nil }))
					return err
				},
				"count": func(a kv.Account) error {
					_, _, err := s.RangeWithin(&kv.RangeOp{Key: key, End: end, CountOnly: true, Revision: old}, a)
					return err
				},
				"count behind a page": func(a kv.Account) error {
					_, _, err := s.RangeWithin(&kv.RangeOp{Key: key, End: end, Limit: 1, Revision: old}, a)
					return err
				},
				"compare": func(a kv.Account) error {
					_, err := s.CheckAt(compare, 0, a, nil)
					return err
				},
				"compare a moment": func(a kv.Account) error {
					_, err := s.After(s.Revision()).Check(compare, a)
					return err
				},
				"read a moment": func(a kv.Account) error {
					_, err := s.After(s.Revision()).Range(&kv.RangeOp{Key: key, End: end, MinMod: 1 << 60}, a)
					return err
				},
				"visit": func(a kv.Account) error {
					return s.VisitKeys(key, end, a, func([]byte, int) bool { return true })
				},
				"writer": func(a kv.Account) error {
					w := s.Begin()
					_, err := w.Range(&kv.RangeOp{Key: key, End: end, MinMod: 1 << 60}, a)
					if commitErr := w.Commit(); commitErr != nil {
						t.Errorf("an error of an account became one of the writer: %v", commitErr)
					}
					return err
				},
			} {
				enough := &weary{left: 1 << 30}
				if err := walk(enough); err != nil {
					t.Errorf("%s, %s %s: %v", o.name, name, prefix, err)
				}
				far := 1<<30 - enough.left
				if far < keys/2*kv.WalkKeyBytes {
					t.Errorf("%s, %s %s: it walked over %d bytes", o.name, name, prefix, far)
				}
				if err := walk(&weary{left: far / 2}); !errors.Is(err, errWeary) {
					t.Errorf("%s, %s %s: ended by %v", o.name, name, prefix, err)
				}
			}
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that a comparison of a large value makes no copy of it.
func TestStore_CheckAt_large(t *testing.T) {
	const size = 8 << 20
	inMemory := slices.IndexFunc(openers, func(o opener) bool { return o.name == "mem" }) // reads without copies
	s, eng := openStore(t, openers[inMemory], filestest.NewMem(), -1)
	defer func() { _ = eng.Close() }()
	put(t, s, "large", string(bytes.Repeat([]byte{1}, size)), 0)
	w := s.Begin()
	defer w.Abandon()
	if found, err := s.Get([]byte("large")); err != nil || found == nil { // the engine reads it once
		t.Fatal(found, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	left := int64(1 << 40)
	for _, end := range []string{"", "largf"} {
		c := &kv.Compare{Key: []byte("large"), End: []byte(end), Target: kv.CompareValue, Result: kv.CompareNotEqual, Value: []byte("a")}
		now, err := s.CheckAt(c, 0, unlimited{}, nil)
		then, err2 := s.CheckAt(c, 2, unlimited{}, nil)
		moment, err3 := s.After(2).Check(c, unlimited{})
		if !now || !then || !moment || !w.Check(c, &left) || cmp.Or(err, err2, err3) != nil {
			t.Errorf("up to %q: %v, %v, %v; %v", end, now, then, moment, cmp.Or(err, err2, err3))
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > size/2 {
		t.Errorf("the comparisons took %d bytes", n)
	}
}
