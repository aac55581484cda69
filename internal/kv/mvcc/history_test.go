package mvcc_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// states are what revisions made of a key: the last change of each, oldest first.
func (m *model) states(key []byte) (all []modelChange) {
	for _, c := range m.history {
		if bytes.Equal(c.kv.Key, key) {
			all = withState(all, c)
		}
	}
	return all
}

func withState(all []modelChange, c modelChange) []modelChange {
	if n := len(all); n > 0 && all[n-1].rev.Main == c.rev.Main {
		all = all[:n-1]
	}
	return append(all, c)
}

// stateAt is the key at a revision, nil if it did not exist.
func stateAt(states []modelChange, rev kv.Revision) (found *kv.KeyValue) {
	for i := range states {
		if c := &states[i]; c.rev.Main <= rev {
			if found = &c.kv; c.deleted {
				found = nil
			}
		}
	}
	return found
}

// versionOf is a change as pages have it.
func versionOf(c modelChange, value bool) mvcc.Version {
	if c.deleted {
		return mvcc.Version{Deleted: true, KeyValue: kv.KeyValue{ModRevision: c.rev.Main}}
	}
	v := mvcc.Version{KeyValue: c.kv, Size: len(c.kv.Value)}
	if v.Key = nil; !value {
		v.Value = nil
	}
	return v
}

// versions is Versions without bounds: what can be read at some revision from the compact one on, and deletions from then on.
func (m *model) versions(key []byte, before kv.Revision) (all []mvcc.Version) {
	states := m.states(key)
	for i, c := range slices.Backward(states) {
		last := i+1 == len(states) || states[i+1].rev.Main > m.compact // it is current at the compact revision, or later
		if !last || c.deleted && c.rev.Main < m.compact {
			break
		}
		if before <= 0 || c.rev.Main < before {
			all = append(all, versionOf(c, true))
		}
	}
	return all
}

// deletedKeys is Deleted without bounds.
func (m *model) deletedKeys(q *mvcc.DeletedQuery) (all []mvcc.DeletedKey) {
	states := map[string][]modelChange{}
	for _, c := range m.history {
		if key := string(c.kv.Key); modelInRange(c.kv.Key, q.Key, q.End) {
			states[key] = withState(states[key], c)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(states)) {
		if one, found := m.deletedKey([]byte(key), states[key], q); found {
			all = append(all, one)
		}
	}
	return all
}

func (m *model) deletedKey(key []byte, states []modelChange, q *mvcc.DeletedQuery) (one mvcc.DeletedKey, found bool) {
	now := states[len(states)-1]
	if !now.deleted {
		if !q.Existing {
			return one, false
		}
		one.Now = versionOf(now, false)
	}
	one.Key = key
	var was *kv.KeyValue
	if q.At > 0 {
		if one.Read = q.At; now.rev.Main <= q.At {
			return one, false
		}
		if now.deleted {
			one.Deleted = now.rev.Main
		}
		was = stateAt(states, q.At)
	} else {
		for _, c := range slices.Backward(states) { // the last deletion of what existed at a revision that can be read
			if before := c.rev.Main - 1; c.deleted && was == nil && before >= m.compact {
				was = stateAt(states, before)
				one.Read, one.Deleted = before, c.rev.Main
			}
		}
	}
	if was == nil {
		return one, false
	}
	one.Was = mvcc.Version{KeyValue: *was, Size: len(was.Value)}
	one.Was.Key, one.Was.Value = nil, nil
	one.Same = !now.deleted && bytes.Equal(now.kv.Value, was.Value)
	return one, true
}

// past compares reads of the history with the model's, page by page.
func (d *driver) past() {
	d.t.Helper()
	vq := mvcc.VersionQuery{Key: d.key(), Values: true, Limit: 1 + d.r.IntN(3), Bytes: 1 + d.r.IntN(2000)}
	if d.r.IntN(2) == 0 {
		vq.Before = d.revision()
	}
	want, got := d.model.versions(vq.Key, vq.Before), []mvcc.Version(nil)
	for ask := vq; ; {
		page, err := d.store.Versions(&ask, unlimited{})
		d.sameErr(nil, err)
		d.same("history", mvcc.History{Revision: d.model.rev, First: max(d.model.compact, 1)}, page.History)
		if len(page.Versions) > ask.Limit || page.Next > 0 && len(page.Versions) == 0 {
			d.t.Fatalf("%+v: a page of %d, and then before %d", ask, len(page.Versions), page.Next)
		}
		got = append(got, page.Versions...)
		if ask.Before = page.Next; page.Next == 0 {
			break
		}
	}
	d.same(fmt.Sprintf("versions %+v", vq), want, got)
	q := mvcc.DeletedQuery{Key: d.key(), Existing: d.r.IntN(2) == 0, Limit: 1 + d.r.IntN(4), Bytes: 1 + d.r.IntN(300),
		Rows: 1 + d.r.IntN(20), Changes: []int{0, 1 << 20, d.r.IntN(100)}[d.r.IntN(3)]}
	q.End = d.end(q.Key)
	if d.r.IntN(2) == 0 {
		q.At = max(d.revision(), 0)
	}
	d.deleted(&q)
	d.changes(&mvcc.ChangeQuery{Key: q.Key, End: q.End, Limit: 1 + d.r.IntN(4), Bytes: 1 + d.r.IntN(300), Changes: 1 + d.r.IntN(60)})
}

// changes compares all pages of a query.
func (d *driver) changes(q *mvcc.ChangeQuery) {
	d.t.Helper()
	if d.r.IntN(2) == 0 {
		q.Before = kv.Rev{Main: max(d.revision(), 0), Sub: int64(d.r.IntN(3))}
	}
	var want, got []mvcc.KeyChange
	for _, c := range slices.Backward(d.model.history) {
		at := c.rev
		behind := q.Before == (kv.Rev{}) || at.Main < q.Before.Main || at.Main == q.Before.Main && at.Sub < q.Before.Sub
		if behind && at.Main > d.model.compact && modelInRange(c.kv.Key, q.Key, q.End) {
			want = append(want, mvcc.KeyChange{Key: c.kv.Key, At: at, Deleted: c.deleted, Created: !c.deleted && c.kv.Version == 1})
		}
	}
	for ask := *q; ; {
		page, err := d.store.Changes(&ask, unlimited{})
		d.sameErr(nil, err)
		d.same("history", mvcc.History{Revision: d.model.rev, First: max(d.model.compact, 1)}, page.History)
		if len(page.Changes) > ask.Limit || page.Next != (kv.Rev{}) && page.Next == ask.Before {
			d.t.Fatalf("%+v: a page of %d, and then before %+v", ask, len(page.Changes), page.Next)
		}
		got = append(got, page.Changes...)
		if ask.Before = page.Next; page.Next == (kv.Rev{}) {
			break
		}
	}
	d.same(fmt.Sprintf("changes %+v", q), want, got)
}

// deleted compares all pages of a query.
func (d *driver) deleted(q *mvcc.DeletedQuery) {
	d.t.Helper()
	_, wantErr := d.model.check(q.At)
	var got []mvcc.DeletedKey
	for ask := *q; ; {
		page, err := d.store.Deleted(&ask, unlimited{})
		d.sameErr(wantErr, err)
		if err != nil {
			return
		}
		d.same("history", mvcc.History{Revision: d.model.rev, First: max(d.model.compact, 1)}, page.History)
		if len(page.Keys) > ask.Limit || page.Next != nil && bytes.Compare(page.Next, ask.From) <= 0 {
			d.t.Fatalf("%+v: a page of %d, and then from %q on", ask, len(page.Keys), page.Next)
		}
		got = append(got, page.Keys...)
		if ask.From = page.Next; page.Next == nil {
			break
		}
	}
	d.same(fmt.Sprintf("deleted %+v", q), d.model.deletedKeys(q), got)
}

// Ensure that what the history has of many keys is found by rows and by changes alike, in pages that go on from one another, while
// some of it is compacted, with values that lie apart from their keys.
func TestStore_Deleted_many(t *testing.T) {
	const keys, size = 6000, 5000
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, o)
			key := func(i int) []byte { return fmt.Appendf(nil, "k/%05d", i) }
			put := func(from, to, step int, value []byte) {
				w := s.Begin()
				for i := from; i < to; i += step {
					w.BeginCommand()
					w.Put(key(i), value, 7)
					w.EndCommand()
				}
				commit(t, w)
			}
			put(0, keys, 1, []byte("first"))
			put(0, keys, 3, bytes.Repeat([]byte{1}, size))
			first := s.Revision()
			remove(t, s, key(keys/2), key(keys))
			for _, q := range []mvcc.DeletedQuery{{Changes: 0}, {Changes: 1 << 20}, {At: first}, {At: first, Changes: 1 << 20},
				{Changes: keys}} {
				q.Key, q.End, q.Limit, q.Bytes, q.Rows = []byte{0}, []byte{0}, 700, 400_000, 2500
				found, pages := 0, 0
				for {
					page, err := s.Deleted(&q, unlimited{})
					if err != nil {
						t.Fatal(err)
					}
					for _, one := range page.Keys {
						i := keys/2 + found
						want := mvcc.Version{Size: 5, KeyValue: kv.KeyValue{ModRevision: kv.Revision(2 + i),
							CreateRevision: kv.Revision(2 + i), Version: 1, Lease: 7}}
						if i%3 == 0 {
							want.Size, want.ModRevision, want.Version = size, kv.Revision(2+keys+i/3), 2
						}
						if !bytes.Equal(one.Key, key(i)) || one.Deleted != first+1 || one.Read != first || diff(want, one.Was) != "" {
							t.Fatalf("%+v: key %d is %+v, want %+v", q, i, one, want)
						}
						found++
					}
					if most := q.Rows + 3*700 + firstRows + q.Changes; page.Looked > most {
						t.Errorf("%+v: looked at %d", q, page.Looked)
					}
					if pages++; page.Next == nil {
						break
					}
					q.From = page.Next
				}
				if found != keys/2 || pages < keys/2/700 {
					t.Errorf("%+v: %d keys in %d pages", q, found, pages)
				}
			}
		})
	}
}

// firstRows is the constant of package mvcc.
const firstRows = 2048

func commit(t testing.TB, w *mvcc.Writer) {
	t.Helper()
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, s *mvcc.Store, key, end []byte) {
	t.Helper()
	w := s.Begin()
	w.BeginCommand()
	w.DeleteRange(key, end, unlimited{})
	w.EndCommand()
	commit(t, w)
}

// Ensure that a compaction between two pages shows, and takes the keys that it makes unreadable out of later pages.
func TestStore_Deleted_compactedMeanwhile(t *testing.T) {
	s := newStore(t, openers[0])
	for _, key := range []string{"a", "b", "c"} {
		w := s.Begin()
		w.BeginCommand()
		w.Put([]byte(key), []byte("v"), 0)
		w.EndCommand()
		commit(t, w)
		remove(t, s, []byte(key), nil)
	}
	q := mvcc.DeletedQuery{Key: []byte("a"), End: []byte{0}, Limit: 1, Bytes: 1 << 20, Rows: 100, Changes: 100}
	page, err := s.Deleted(&q, unlimited{})
	if err != nil || len(page.Keys) != 1 || page.Next == nil || page.First != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	w := s.Begin()
	if err := w.Compact(5); err != nil { // b is deleted at 5
		t.Fatal(err)
	}
	commit(t, w)
	q.From = page.Next
	page, err = s.Deleted(&q, unlimited{})
	if err != nil || len(page.Keys) != 1 || string(page.Keys[0].Key) != "c" || page.First != 5 {
		t.Errorf("%+v, %v", page, err)
	}
	q.At = 4
	if _, err := s.Deleted(&q, unlimited{}); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("at a compacted revision: %v", err)
	}
	q.At = 99
	if _, err := s.Deleted(&q, unlimited{}); !errors.Is(err, kv.ErrFutureRevision) {
		t.Errorf("in the future: %v", err)
	}
}

// Ensure that the account bounds an answer, and that its end ends a walk.
func TestStore_Deleted_account(t *testing.T) {
	s := newStore(t, openers[0])
	w := s.Begin()
	for i := range 5000 {
		w.BeginCommand()
		w.Put(fmt.Appendf(nil, "k%d", i), []byte("v"), 0)
		w.EndCommand()
	}
	commit(t, w)
	remove(t, s, []byte("k"), []byte("l"))
	full := errors.New("no room")
	for _, changes := range []int{0, 1 << 20} {
		q := mvcc.DeletedQuery{Key: []byte{0}, End: []byte{0}, Limit: 5000, Bytes: 1 << 30, Rows: 1 << 20, Changes: changes}
		if _, err := s.Deleted(&q, &narrow{left: 100_000, full: full}); !errors.Is(err, full) {
			t.Errorf("more than there is room for: %v", err)
		}
		if _, err := s.Deleted(&q, &narrow{left: 1 << 30, walks: 3, full: full}); !errors.Is(err, full) {
			t.Errorf("a walk that was ended: %v", err)
		}
	}
	if _, err := s.Versions(&mvcc.VersionQuery{Key: []byte("k1"), Limit: 9, Bytes: 99}, &narrow{full: full}); !errors.Is(err, full) {
		t.Errorf("versions without room: %v", err)
	}
}

// narrow is an account with little room, which ends a walk after some steps; zero: it does not.
type narrow struct {
	left, walks int
	full        error
}

func (n *narrow) Take(bytes int) error {
	if n.left -= bytes; n.left < 0 {
		return n.full
	}
	return nil
}

func (n *narrow) Walk(int) error {
	if n.walks--; n.walks == 0 {
		return n.full
	}
	return nil
}

func (*narrow) Release() {}

// BenchmarkStore_Deleted is one call where the last thousand of many keys were deleted: by changes, and by rows.
func BenchmarkStore_Deleted(b *testing.B) {
	const keys, gone = 200_000, 1000
	s, eng := benchStore(b, mvcc.Options{})
	fill(b, s, keys, 1)
	w := s.Begin()
	if err := w.Compact(s.Revision()); err != nil {
		b.Fatal(err)
	}
	commit(b, w)
	for i := range gone {
		remove(b, s, benchKey(99+100*(keys/100-1-i)), nil) // of the last name space
	}
	if err := eng.Flush(); err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name, from string
		changes    int
	}{{"changes", "/", 128 << 10}, {"rows", "/", 0}, {"dense", "/registry/pods/ns-099/", 0}} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			looked, found := 0, 0
			for b.Loop() {
				page, err := s.Deleted(&mvcc.DeletedQuery{Key: []byte(row.from), End: []byte{0}, Limit: gone, Bytes: 4 << 20,
					Rows: 32 << 10, Changes: row.changes}, unlimited{})
				if err != nil {
					b.Fatal(err)
				}
				looked, found = page.Looked, len(page.Keys)
			}
			b.ReportMetric(float64(looked), "looked/op")
			b.ReportMetric(float64(found), "found/op")
		})
	}
}

// BenchmarkStore_Versions is one call for 100 versions of a key.
func BenchmarkStore_Versions(b *testing.B) {
	s, eng := benchStore(b, mvcc.Options{})
	fill(b, s, 1000, 100)
	if err := eng.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		page, err := s.Versions(&mvcc.VersionQuery{Key: benchKey(500), Limit: 1000, Bytes: 1 << 20}, unlimited{})
		if err != nil || len(page.Versions) != 100 {
			b.Fatal(len(page.Versions), err)
		}
	}
}

// Ensure that the changes of very many, and of long, keys are looked at in parts, of bounded memory.
func TestStore_Deleted_manyChanges(t *testing.T) {
	const shorts, keys = 3000, 1500
	s := newStore(t, openers[0])
	w := s.Begin()
	for i := range shorts + keys {
		w.BeginCommand()
		key := fmt.Appendf(nil, "a%05d", i)
		if i >= shorts {
			key = append(bytes.Repeat([]byte("k"), 1000), key...)
		}
		w.Put(key, []byte("v"), 0)
		w.EndCommand()
	}
	commit(t, w)
	if w = s.Begin(); w.Compact(shorts+keys+1) != nil {
		t.Fatal("it is not compacted")
	}
	commit(t, w)
	remove(t, s, []byte("k"), []byte("l"))
	q := mvcc.DeletedQuery{Key: []byte("a"), End: []byte("z"), Limit: 1 << 20, Bytes: 1 << 30, Rows: firstRows, Changes: 1 << 20}
	for found, pages := 0, 0; ; pages++ {
		spent := &narrow{left: 1 << 30}
		page, err := s.Deleted(&q, spent)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.Keys {
			if want := fmt.Sprintf("a%05d", shorts+found); !bytes.HasSuffix(one.Key, []byte(want)) || one.Deleted != shorts+keys+2 {
				t.Fatalf("key %d is %s, deleted at %d", found, one.Key, one.Deleted)
			}
			found++
		}
		if took := 1<<30 - spent.left; took > 8<<20 {
			t.Errorf("page %d took %d bytes", pages, took)
		}
		if q.From = page.Next; page.Next == nil {
			if found != keys || pages < 1 {
				t.Errorf("%d keys in %d pages", found, pages+1)
			}
			return
		}
	}
}
