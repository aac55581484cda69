package mvcc_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// gaps writes revisions 2, 10, 20 and 30 and nothing between them, all in one batch or each in its own.
func gaps(t *testing.T, s *mvcc.Store, together bool) {
	t.Helper()
	put(t, s, "a", "1", 0) // 2
	put(t, s, "b", "1", 0) // 3, which is the last without a gap before it
	w := s.Begin()
	for i, change := range []func(){
		func() { w.Put([]byte("a"), []byte("2"), 0) },
		func() { w.DeleteRange([]byte("b"), nil, nil) },
		func() { w.Put([]byte("a"), []byte("3"), 0); w.Put([]byte("b"), []byte("2"), 0) },
	} {
		w.BeginCommandAt(kv.Revision(10 * (i + 1)))
		change()
		w.EndCommand()
		if !together && i < 2 {
			if err := w.Commit(); err != nil {
				t.Fatal(err)
			}
			w = s.Begin()
		}
	}
	if together {
		for rev := kv.Revision(2); rev <= 30; rev++ {
			if got, err := w.Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}, Revision: rev}, nil); err != nil || show(got) != gapState(rev) {
				t.Errorf("the writer reads %s at %d, %v, want %s", show(got), rev, err, gapState(rev))
			}
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// gapState is the result of a read of everything at a revision.
func gapState(rev kv.Revision) string {
	switch {
	case rev < 3:
		return "a=1 c2 m2 v1 l0, count 1"
	case rev < 10:
		return "a=1 c2 m2 v1 l0, b=1 c3 m3 v1 l0, count 2"
	case rev < 20:
		return "a=2 c2 m10 v2 l0, b=1 c3 m3 v1 l0, count 2"
	case rev < 30:
		return "a=2 c2 m10 v2 l0, count 1"
	}
	return "a=3 c2 m30 v3 l0, b=2 c30 m30 v1 l0, count 2"
}

// Revisions that no command took read like the last one before them, hash like it, start a watch and can be compacted to.
func TestStore_gaps(t *testing.T) {
	for _, o := range openers {
		for _, together := range []bool{true, false} {
			for compacted := kv.Revision(0); compacted <= 30; compacted++ {
				s := newStore(t, o)
				gaps(t, s, together)
				if compacted > 0 {
					if err := compact(t, s, compacted); err != nil {
						t.Fatal(err)
					}
					if _, err := s.CompactStep(1); err != nil {
						t.Fatal(err)
					}
					checkGaps(t, s, compacted)
					settle(t, s)
				}
				if checkGaps(t, s, compacted); t.Failed() {
					t.Fatalf("%s, compacted to %d, in one batch: %v", o.name, compacted, together)
				}
			}
		}
	}
}

func checkGaps(t *testing.T, s *mvcc.Store, compacted kv.Revision) {
	t.Helper()
	hashes := map[string]uint32{}
	for rev := kv.Revision(2); rev <= 31; rev++ {
		var want error
		switch {
		case rev > 30:
			want = kv.ErrFutureRevision
		case rev < compacted:
			want = kv.ErrCompacted
		}
		got, current, err := s.Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}, Revision: rev})
		if !errors.Is(err, want) || want == nil && show(got) != gapState(rev) || current != 30 {
			t.Errorf("at %d of %d: %s, %v", rev, current, show(got), err)
		}
		one, _, err := s.Range(&kv.RangeOp{Key: []byte("b"), Revision: rev})
		if has := rev >= 3 && rev < 20 || rev >= 30; !errors.Is(err, want) || want == nil && (one.Count == 1) != has {
			t.Errorf("b at %d: %+v, %v", rev, one, err)
		}
		hash, _, _, err := s.HashKV(rev)
		before, known := hashes[gapState(rev)]
		if !errors.Is(err, want) || want == nil && known && before != hash {
			t.Errorf("hash at %d: %x, %v, before in the gap it was %x", rev, hash, err, before)
		}
		if want == nil {
			hashes[gapState(rev)] = hash
		}
		checkGapEvents(t, s, rev, compacted)
	}
}

func checkGapEvents(t *testing.T, s *mvcc.Store, from, compacted kv.Revision) {
	t.Helper()
	changes, next, err := s.EventsSince(mvcc.EventQuery{From: from, Prev: true})
	if from < compacted && from <= 30 {
		if !errors.Is(err, kv.ErrCompacted) {
			t.Errorf("events from %d, compacted at %d: %v", from, compacted, err)
		}
		return
	}
	var want, got string
	for _, c := range []struct {
		rev  kv.Revision
		text string
	}{{2, "2:a=1 "}, {3, "3:b=1 "}, {10, "10:a=2(1) "}, {20, "20:b=(1) "}, {30, "30:a=3(2) 30:b=2 "}} {
		switch {
		case c.rev < from:
		case c.rev == compacted && c.rev == 10: // earlier versions are deleted
			want += "10:a=2 "
		case c.rev == compacted && c.rev == 20:
			want += "20:b= "
		case c.rev == compacted && c.rev == 30:
			want += "30:a=3 30:b=2 "
		default:
			want += c.text
		}
	}
	for i := range changes {
		for _, ev := range changes[i].Events {
			got += fmt.Sprintf("%d:%s=%s", changes[i].Revision, ev.KV.Key, ev.KV.Value)
			if ev.Prev != nil {
				got += fmt.Sprintf("(%s)", ev.Prev.Value)
			}
			got += " "
		}
	}
	if err != nil || got != want || next != 31 {
		t.Errorf("events from %d, compacted to %d: %q up to %d, %v, want %q", from, compacted, got, next, err, want)
	}
}
