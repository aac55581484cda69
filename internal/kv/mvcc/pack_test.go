package mvcc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// runsOver is a pack at the greatest revision, whose second change overflows and comes before its first.
var runsOver = slices.Concat([]byte{changePack}, binary.AppendUvarint(nil, math.MaxInt64-3), []byte{0, 0, 1, 'a'},
	far(math.MaxInt64, 'b'), far(math.MaxInt64, 'c'), far(math.MaxInt64-1, 'd'))

// subRunsOver is a pack at revision 5 whose second change has a sub revision that does not fit into a key.
func subRunsOver(kind byte) []byte {
	return append(binary.AppendUvarint([]byte{changePack, 1}, maxSub), 0, 1, 'k', packSame|kind, 1, 'l', 0, 1, 'm')
}

// far is a change of a key of one byte, so many revisions after the one before it.
func far(revisions uint64, key byte) []byte {
	return append(binary.AppendUvarint([]byte{packFar}, revisions), 1, key)
}

// Ensure that a row that decodes as a pack is in order, ends at its key, and encodes to the same.
func FuzzOpenPack(f *testing.F) {
	var p pack
	for i, c := range []change{{kind: changeCreate, user: []byte("a")}, {kind: changeUpdate, user: []byte("a\x00")},
		{kind: changeDelete, named: true, before: position{kv.Rev{Main: 1}, 9}, user: nil}} {
		p.add(&c, []kv.Rev{{Main: 4, Sub: 2}, {Main: 4, Sub: 3}, {Main: 9}}[i])
	}
	f.Add(p.append(nil), int64(9), uint32(0))
	f.Add([]byte{changePack, 1, 0, changeCreate, 1, 'k', packSame, 1, 'l'}, int64(1), uint32(1))
	f.Add(subRunsOver(0), int64(5), uint32(0))
	p.reset()
	for i, by := range []kv.Author{{Member: 1, User: "ann"}, {Member: 2, Client: true}, {Member: 2, Client: true},
		{Member: 1, User: "ann"}} {
		p.add(&change{kind: changeCreate, user: []byte("a"), by: appendAuthor(nil, &by)}, kv.Rev{Main: kv.Revision(i + 3)})
	}
	f.Add(p.append(nil), int64(6), uint32(0))
	f.Add(runsOver, int64(math.MaxInt64), uint32(0))
	f.Fuzz(func(t *testing.T, row []byte, main int64, sub uint32) {
		last := kv.Rev{Main: kv.Revision(main), Sub: int64(sub)}
		if main < 0 {
			return
		}
		r, ok := openPack(row, last)
		var again pack
		before := kv.Rev{Main: -1}
		for changes := 0; ok && !r.exhausted(); changes++ {
			var c change
			if c, ok = r.next(); !ok {
				break
			}
			if !later(r.at, before) || later(r.at, last) || c.named && !later(r.at, c.before.rev) {
				t.Fatalf("%x: %v comes after %v, and replaces %v", row, r.at, before, c.before)
			}
			if before = r.at; changes > 0 && !again.takes(&change{by: c.by}, r.at) {
				return // no writer makes such a pack, or one so long
			}
			again.add(&c, r.at)
		}
		if !ok {
			return
		}
		if before != last {
			t.Fatalf("%x at %v ends at %v", row, last, before)
		}
		third, ok := openPack(again.append(nil), last)
		for r, _ = openPack(row, last); !r.exhausted(); {
			want, _ := r.next()
			if !ok || third.exhausted() {
				t.Fatalf("%x became %x", row, again.append(nil))
			}
			got, same := third.next()
			if !same || third.at != r.at || got.kind != want.kind || got.named != want.named || got.before != want.before ||
				!bytes.Equal(got.user, want.user) || !bytes.Equal(got.by, want.by) {
				t.Fatalf("%+v at %v became %+v at %v", want, r.at, got, third.at)
			}
		}
	})
}

// Ensure that the changes of a batch share rows, none of which is so long that the engine may store it apart; and that a walk
// which ends within a row continues there, also after the store was reopened, and where changes do not name the versions that
// they replaced.
func TestWriter_packs(t *testing.T) {
	const batch, keys, wantRows, most = 100, 10, 5, 1 << 10
	for _, named := range []bool{true, false} {
		eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(eng, Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := s.Begin()
		for i := range batch {
			w.BeginCommand()
			key := fmt.Appendf(nil, "/registry/leases/node-%02d", i%keys)
			if w.Put(key, []byte("v"), 0); i < 3*keys/2 { // a tombstone goes with its change, at the same revision or another one
				w.DeleteRange(key, nil, nil)
			}
			w.EndCommand()
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		if !named {
			if err := s.ForgetReplaced(); err != nil {
				t.Fatal(err)
			}
		}
		if rows, err := s.ChangeRows(); err != nil || rows > wantRows || rows < wantRows/2 {
			t.Errorf("named %v: %d rows, %v", named, rows, err)
		}
		it, err := eng.NewIter(changeBounds(kv.Rev{}))
		if err != nil {
			t.Fatal(err)
		}
		for valid := it.First(); valid; valid = it.Next() {
			if len(it.Value()) >= most {
				t.Errorf("named %v: a row of %d bytes", named, len(it.Value()))
			}
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		for _, at := range []kv.Revision{8, 15, 16, 57, s.Revision()} {
			w := s.Begin()
			if err := w.Compact(at); err != nil {
				t.Fatal(err)
			}
			if err := w.Commit(); err != nil {
				t.Fatal(err)
			}
			for done := false; !done; {
				if s, err = Open(eng, Options{}); err != nil {
					t.Fatal(err)
				}
				if done, err = s.CompactStep(7); err != nil { // the engine in memory checks that no version is deleted twice
					t.Fatal(err)
				}
			}
			changes, next, err := s.EventsSince(EventQuery{From: at})
			if want := int(s.Revision()-at) + 1; err != nil || len(changes) != want || next != s.Revision()+1 {
				t.Errorf("named %v, compacted at %d: %d changes up to %d, %v", named, at, len(changes), next, err)
			}
		}
		if rows, err := s.ChangeRows(); err != nil || rows != 1 || s.Size().Versions != keys {
			t.Errorf("named %v: %d rows are left, and %d versions, %v", named, rows, s.Size().Versions, err)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that the change of a long key has a row alone, and that a change that is far from those before begins another pack.
func TestPack_takes(t *testing.T) {
	var p pack
	p.add(&change{user: []byte("a")}, kv.Rev{Main: 5, Sub: 3})
	for _, row := range []struct {
		user string
		rev  kv.Rev
		want bool
	}{
		{"b", kv.Rev{Main: 5, Sub: 4}, true}, {"b", kv.Rev{Main: 6}, true}, {"b", kv.Rev{Main: 1000}, true},
		{"b", kv.Rev{Main: 5, Sub: 5}, false}, {"b", kv.Rev{Main: 6, Sub: 1}, false},
		{string(make([]byte, maxPackBytes)), kv.Rev{Main: 6}, false},
	} {
		if got := p.takes(&change{user: []byte(row.user)}, row.rev); got != row.want {
			t.Errorf("key of %d bytes at %v: %v", len(row.user), row.rev, got)
		}
	}
	if p.reset(); !p.takes(&change{user: make([]byte, maxPackBytes)}, kv.Rev{Main: 6, Sub: 1}) {
		t.Error("an empty one refuses")
	}
}

// Ensure that a pack whose changes overflow their keys is reported as damage, by a watch and by a compaction.
func TestStore_packRunsOver(t *testing.T) {
	eng, err := engine.Open(engine.Options{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := Open(eng, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := s.Begin()
	for range 5 {
		w.BeginCommand()
		w.Put([]byte("k"), []byte("v"), 0)
		w.EndCommand()
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]byte{subRunsOver(0), subRunsOver(changeDelete)} {
		b := eng.NewBatch()
		b.DeleteRange(changeBounds(kv.Rev{}))
		b.Set(appendChangeKey(nil, kv.Rev{Main: 5}), row)
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.EventsSince(EventQuery{From: 2}); !errors.Is(err, ErrCorruptRow) {
			t.Errorf("%x: a watch: %v", row, err)
		}
	}
	w = s.Begin()
	if err := w.Compact(6); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompactStep(100); !errors.Is(err, ErrCorruptRow) {
		t.Errorf("a compaction: %v", err)
	}
}
