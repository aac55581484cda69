package mvcc_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// written is what one revision did to a key, and by whom.
type written struct {
	rev kv.Revision
	by  *kv.Author
}

// Ensure that each version, and each deletion, has the author that the writer named, however authors follow each other in the
// rows, also where rows without authors lie between; that only the names of long users are cut; and that history which is
// compacted takes the authors with it.
func TestStore_Versions_authors(t *testing.T) {
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := mvcc.Open(eng, mvcc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	long := strings.Repeat("u", kv.MostAuthorUser)
	some := []*kv.Author{nil, {Member: 1}, {Member: 2, User: "ann"}, {Member: 1, User: "ann"}, {Member: 1 << 63, Client: true},
		{Member: 3, Expired: true}, {Member: 3, User: long}, {Member: 3, User: long, Cut: true}}
	for i := range 120 {
		some = append(some, &kv.Author{Member: uint64(i), User: fmt.Sprint("user", i)})
	}
	history := map[string][]written{}
	exists := map[string]bool{}
	for range 60 {
		w := s.Begin()
		for range rng.IntN(60) {
			by := some[rng.IntN(len(some))]
			given := by
			if by != nil && by.Cut {
				given = &kv.Author{Member: 3, User: long + "more"}
			}
			w.Attribute(given)
			w.BeginCommand()
			for range 1 + rng.IntN(2) {
				key := fmt.Sprint("k", rng.IntN(8))
				if rng.IntN(4) == 0 {
					if !exists[key] {
						continue
					}
					w.DeleteRange([]byte(key), nil, nil)
					exists[key] = false
				} else {
					w.Put([]byte(key), []byte("v"), 0)
					exists[key] = true
				}
				list := history[key]
				if n := len(list); n > 0 && list[n-1].rev == w.Revision() {
					list = list[:n-1]
				}
				history[key] = append(list, written{w.Revision(), by})
			}
			w.EndCommand()
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	checkAuthors(t, s, history, 0)
	compact := s.Revision() / 2
	w := s.Begin()
	if err := w.Compact(compact); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	checkAuthors(t, s, history, compact) // also before rows are deleted
	for done := false; !done; {
		if done, err = s.CompactStep(17); err != nil {
			t.Fatal(err)
		}
	}
	checkAuthors(t, s, history, compact)
}

func checkAuthors(t *testing.T, s *mvcc.Store, history map[string][]written, compact kv.Revision) {
	t.Helper()
	all, err := s.Changes(&mvcc.ChangeQuery{Key: []byte{0}, End: []byte{0}, Authors: true, Limit: 1 << 20, Bytes: 1 << 30, Changes: 1 << 30},
		unlimited{})
	if err != nil || len(all.Changes) == 0 {
		t.Fatalf("%d changes, %v", len(all.Changes), err)
	}
	told := map[string]kv.Revision{} // of each key, the last revision that was looked at
	for _, c := range all.Changes {
		list, key := history[string(c.Key)], string(c.Key)
		at := slices.IndexFunc(list, func(w written) bool { return w.rev == c.At.Main })
		if at < 0 || c.At.Main <= compact {
			t.Fatalf("%s: a change at %d, compacted at %d", key, c.At.Main, compact)
		}
		if told[key] == c.At.Main { // an earlier change of one revision
			continue
		}
		if told[key] = c.At.Main; (c.By == nil) != (list[at].by == nil) || c.By != nil && *c.By != *list[at].by {
			t.Fatalf("%s, a change at %d: by %+v, not %+v", key, c.At.Main, c.By, list[at].by)
		}
	}
	gone, err := s.Deleted(&mvcc.DeletedQuery{Key: []byte{0}, End: []byte{0}, Existing: true, Authors: true, Limit: 1 << 20, Bytes: 1 << 30,
		Rows: 1 << 30, Changes: 1 << 30}, unlimited{})
	if err != nil || len(gone.Keys) == 0 {
		t.Fatalf("%d deleted keys, %v", len(gone.Keys), err)
	}
	for _, k := range gone.Keys {
		list := history[string(k.Key)]
		at := slices.IndexFunc(list, func(w written) bool { return w.rev == k.Deleted })
		if at < 0 || k.By != nil && (list[at].by == nil || *k.By != *list[at].by) || k.By == nil && list[at].by != nil {
			t.Fatalf("%s, deleted at %d: by %+v, not %+v", k.Key, k.Deleted, k.By, list[at].by)
		}
	}
	for key, list := range history {
		page, err := s.Versions(&mvcc.VersionQuery{Key: []byte(key), Authors: true, Limit: 1 << 20, Bytes: 1 << 30}, unlimited{})
		if err != nil || len(page.Versions) == 0 {
			t.Fatalf("%s: %d versions, %v", key, len(page.Versions), err)
		}
		for i, v := range page.Versions {
			want := list[len(list)-1-i]
			if v.ModRevision < compact {
				want.by = nil
			}
			if v.ModRevision != want.rev || (v.By == nil) != (want.by == nil) || v.By != nil && *v.By != *want.by {
				t.Fatalf("%s at %d, compacted at %d: by %+v, not %+v", key, v.ModRevision, compact, v.By, want.by)
			}
		}
	}
}
