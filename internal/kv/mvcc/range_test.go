package mvcc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// unlimited is an account without a limit.
type unlimited struct{}

func (unlimited) Take(int) error { return nil }
func (unlimited) Walk(int) error { return nil }
func (unlimited) Release()       {}

// do runs one command and commits it.
func do(t *testing.T, s *mvcc.Store, change func(w *mvcc.Writer)) []kv.Event {
	t.Helper()
	w := s.Begin()
	w.BeginCommand()
	change(w)
	events := w.EndCommand()
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return events
}

func put(t *testing.T, s *mvcc.Store, key, value string, lease kv.LeaseID) {
	t.Helper()
	do(t, s, func(w *mvcc.Writer) { w.Put([]byte(key), []byte(value), lease) })
}

func compact(t *testing.T, s *mvcc.Store, rev kv.Revision) error {
	t.Helper()
	w := s.Begin()
	err := w.Compact(rev)
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return err
}

func settle(t *testing.T, s *mvcc.Store) {
	t.Helper()
	for done := false; !done; {
		var err error
		if done, err = s.CompactStep(100); err != nil {
			t.Fatal(err)
		}
	}
}

func show(r kv.RangeResult) string {
	var b strings.Builder
	for _, k := range r.KVs {
		fmt.Fprintf(&b, "%s=%s c%d m%d v%d l%d, ", k.Key, k.Value, k.CreateRevision, k.ModRevision, k.Version, k.Lease)
	}
	fmt.Fprintf(&b, "count %d", r.Count)
	if r.More {
		b.WriteString(", more")
	}
	return b.String()
}

// The store of this table:
//
//	rev 2 a=1   3 b=9   4 c=5 lease 7   5 a=2   6 b deleted   7 b=3   8 d=1
//
// compacted at 4.
func TestStore_Range(t *testing.T) {
	all := kv.RangeOp{Key: []byte("a"), End: []byte("z")}
	with := func(change func(op *kv.RangeOp)) kv.RangeOp {
		op := all
		change(&op)
		return op
	}
	for _, c := range []struct {
		name string
		op   kv.RangeOp
		want string
		err  error
	}{
		{"a single key", kv.RangeOp{Key: []byte("a")}, "a=2 c2 m5 v2 l0, count 1", nil},
		{"a missing key", kv.RangeOp{Key: []byte("x")}, "count 0", nil},
		{"a range", all, "a=2 c2 m5 v2 l0, b=3 c7 m7 v1 l0, c=5 c4 m4 v1 l7, d=1 c8 m8 v1 l0, count 4", nil},
		{"from a key on", kv.RangeOp{Key: []byte("c"), End: []byte{0}}, "c=5 c4 m4 v1 l7, d=1 c8 m8 v1 l0, count 2", nil},
		{"an end before the key is empty", kv.RangeOp{Key: []byte("c"), End: []byte("b")}, "count 0", nil},
		{"an end equal to the key is empty", kv.RangeOp{Key: []byte("c"), End: []byte("c")}, "count 0", nil},
		{"everything", kv.RangeOp{Key: []byte{0}, End: []byte{0}, CountOnly: true}, "count 4", nil},
		{"an old revision", with(func(op *kv.RangeOp) { op.Revision = 6 }), "a=2 c2 m5 v2 l0, c=5 c4 m4 v1 l7, count 2", nil},
		{"the compact revision", with(func(op *kv.RangeOp) { op.Revision = 4 }),
			"a=1 c2 m2 v1 l0, b=9 c3 m3 v1 l0, c=5 c4 m4 v1 l7, count 3", nil},
		{"below the compact revision", with(func(op *kv.RangeOp) { op.Revision = 3 }), "count 0", kv.ErrCompacted},
		{"the future", with(func(op *kv.RangeOp) { op.Revision = 9 }), "count 0", kv.ErrFutureRevision},
		{"a negative revision is now", kv.RangeOp{Key: []byte("b"), Revision: -5}, "b=3 c7 m7 v1 l0, count 1", nil},
		{"limit", with(func(op *kv.RangeOp) { op.Limit = 1 }), "a=2 c2 m5 v2 l0, count 4, more", nil},
		{"limit that is just enough", with(func(op *kv.RangeOp) { op.Limit = 4; op.KeysOnly = true }),
			"a= c2 m5 v2 l0, b= c7 m7 v1 l0, c= c4 m4 v1 l0, d= c8 m8 v1 l0, count 4", nil},
		{"count_only ignores filters", with(func(op *kv.RangeOp) { op.CountOnly = true; op.MinMod = 8; op.Limit = 1 }),
			"count 4", nil},
		{"keys_only sorted by value keeps leases",
			with(func(op *kv.RangeOp) {
				op.KeysOnly = true
				op.Target = kv.SortByValue
				op.Order = kv.SortDescend
				op.Limit = 2
			}),
			"c= c4 m4 v1 l7, b= c7 m7 v1 l0, count 4, more", nil},
		{"keys descending", with(func(op *kv.RangeOp) { op.Order = kv.SortDescend; op.Limit = 2; op.KeysOnly = true }),
			"d= c8 m8 v1 l0, c= c4 m4 v1 l0, count 4, more", nil},
		{"by creation",
			with(func(op *kv.RangeOp) { op.Target = kv.SortByCreate; op.Order = kv.SortAscend; op.KeysOnly = true }),
			"a= c2 m5 v2 l0, c= c4 m4 v1 l0, b= c7 m7 v1 l0, d= c8 m8 v1 l0, count 4", nil},
		{"a target without order sorts what the limit left",
			with(func(op *kv.RangeOp) { op.Target = kv.SortByMod; op.Limit = 2; op.KeysOnly = true }),
			"c= c4 m4 v1 l0, a= c2 m5 v2 l0, count 4, more", nil},
		{"filters, then limit", with(func(op *kv.RangeOp) { op.MinMod = 5; op.MaxMod = 7; op.Limit = 1 }),
			"a=2 c2 m5 v2 l0, count 4, more", nil},
		{"filters are inclusive", with(func(op *kv.RangeOp) { op.MinCreate = 4; op.MaxCreate = 7 }),
			"b=3 c7 m7 v1 l0, c=5 c4 m4 v1 l7, count 4", nil},
		{"a filter on a single key", kv.RangeOp{Key: []byte("a"), MaxMod: 4}, "count 1", nil},
	} {
		for _, o := range openers {
			t.Run(o.name+"/"+c.name, func(t *testing.T) {
				s := newStore(t, o)
				put(t, s, "a", "1", 0)
				put(t, s, "b", "9", 0)
				put(t, s, "c", "5", 7)
				put(t, s, "a", "2", 0)
				do(t, s, func(w *mvcc.Writer) { w.DeleteRange([]byte("b"), nil, nil) })
				put(t, s, "b", "3", 0)
				put(t, s, "d", "1", 0)
				if err := compact(t, s, 4); err != nil {
					t.Fatal(err)
				}
				for _, when := range []string{"before", "after"} {
					got, current, err := s.Range(&c.op)
					if show(got) != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil || current != 8 {
						t.Errorf("%s physical compaction: got %s, %v at %d, want %s, %v", when, show(got), err, current, c.want, c.err)
					}
					got, current, err = rangeInto(t, s, &c.op)
					if show(got) != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil || current != 8 {
						t.Errorf("%s, into rows: got %s, %v at %d, want %s, %v", when, show(got), err, current, c.want, c.err)
					}
					w := s.Begin()
					got, err = w.Range(&c.op, nil)
					if show(got) != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil {
						t.Errorf("%s, by the writer: got %s, %v, want %s, %v", when, show(got), err, c.want, c.err)
					}
					if err := w.Commit(); err != nil {
						t.Fatal(err)
					}
					settle(t, s)
				}
			})
		}
	}
}

func TestStore_CheckAt(t *testing.T) {
	s := newStore(t, openers[1])
	put(t, s, "a", "x", 0)
	put(t, s, "b", "y", 5)
	for _, c := range []struct {
		name string
		c    kv.Compare
		want bool
	}{
		{"a missing key has version 0", kv.Compare{Key: []byte("q"), Target: kv.CompareVersion}, true},
		{"a missing key has create revision 0", kv.Compare{Key: []byte("q"), Target: kv.CompareCreate}, true},
		{"a missing key has lease 0", kv.Compare{Key: []byte("q"), Target: kv.CompareLease}, true},
		{"a missing key's version is less than 1",
			kv.Compare{Key: []byte("q"), Target: kv.CompareVersion, Result: kv.CompareLess, Number: 1}, true},
		{"no condition on a missing value holds",
			kv.Compare{Key: []byte("q"), Target: kv.CompareValue, Result: kv.CompareNotEqual, Value: []byte("z")}, false},
		{"a value", kv.Compare{Key: []byte("a"), Target: kv.CompareValue, Value: []byte("x")}, true},
		{"an empty value to compare with",
			kv.Compare{Key: []byte("a"), Target: kv.CompareValue, Result: kv.CompareGreater}, true},
		{"all keys of a range must match",
			kv.Compare{Key: []byte("a"), End: []byte("c"), Target: kv.CompareVersion, Number: 1}, true},
		{"one key of a range does not",
			kv.Compare{Key: []byte("a"), End: []byte("c"), Target: kv.CompareLease, Number: 5}, false},
		{"an empty range is one missing key",
			kv.Compare{Key: []byte("m"), End: []byte("n"), Target: kv.CompareVersion}, true},
		{"an empty range has no value",
			kv.Compare{Key: []byte("m"), End: []byte("n"), Target: kv.CompareValue, Result: kv.CompareNotEqual}, false},
		{"a range whose end is before its key",
			kv.Compare{Key: []byte("c"), End: []byte("a"), Target: kv.CompareVersion, Number: 1}, false},
		{"from a key on",
			kv.Compare{Key: []byte("b"), End: []byte{0}, Target: kv.CompareMod, Result: kv.CompareGreater, Number: 2}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.CheckAt(&c.c, 0, nil, nil)
			if err != nil || got != c.want {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
			w := s.Begin()
			if got := w.Check(&c.c, nil); got != c.want {
				t.Errorf("by the writer: got %v, want %v", got, c.want)
			}
			if err := w.Commit(); err != nil {
				t.Error(err)
			}
		})
	}
}
