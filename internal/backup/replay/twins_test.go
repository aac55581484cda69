package replay_test

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
)

// Primes of xxHash64.
const (
	prime1 = 11400714785074694791
	prime2 = 14029467366897019727
)

// collides returns a text with the same xxHash64 as another one, of which two words differ: the first bit that the hash forgets
// in one word is taken back by the word 32 bytes behind it.
func collides(t *testing.T, text []byte) []byte {
	t.Helper()
	inverse := uint64(prime2)
	for range 6 {
		inverse *= 2 - prime2*inverse
	}
	for at := len(text) / 2 / 8 * 8; at+64 <= len(text); at += 8 {
		for _, sign := range []uint64{1, ^uint64(0)} {
			other := slices.Clone(text)
			other[at+7] ^= 0x80
			word := other[at+32:]
			by := sign * bits.RotateLeft64(1, 30)
			binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)+by*prime1*inverse)
			if xxhash.Sum64(other) == xxhash.Sum64(text) {
				return other
			}
		}
	}
	t.Fatal("no collision")
	return nil
}

// twinned is a member with a put, in one of its segments, of which somebody has made another one with the same sum.
type twinned struct {
	*member
	own    backup.Stored
	next   backup.Stored // that continues own
	put    consensus.Index
	forged []byte // the payload
}

func newTwinned(t *testing.T) *twinned {
	m := newMember(t, 7, openMem)
	m.write(20)
	m.settle()
	m.apply(kv.Command{Put: &kv.PutOp{Key: []byte("once"), Value: []byte(strings.Repeat("a value that nobody overwrites; ", 8))}})
	w := &twinned{member: m, put: m.machine.Chain().Index}
	m.write(30)
	m.settle()
	c := m.catalog()
	for i := range c.Segments[:len(c.Segments)-1] {
		if s := c.Segments[i]; s.First <= w.put && w.put <= s.End.Index {
			w.own, w.next = s, c.Segments[i+1]
		}
	}
	for _, base := range c.Bases {
		if base.Index >= w.own.First {
			w.place.Remove(base.String())
		}
	}
	w.forged = collides(t, m.items()[w.put].Entry.Payload)
	return w
}

// twin puts a segment of the entries from one to another, with the forged one; first says whether a plan takes it before own.
func (w *twinned) twin(from, to consensus.Index, first bool) string {
	w.t.Helper()
	content, _ := w.place.Bytes(w.own.String())
	segment, err := backup.Unpack(&w.own.SegmentName, content)
	if err != nil {
		w.t.Fatal(err)
	}
	all := w.items()
	segment.Items = nil
	for i := from; i <= to; i++ {
		item := all[i]
		if i == w.put {
			item.Entry.Payload = w.forged
		}
		segment.Items = append(segment.Items, item)
	}
	if from > w.own.First {
		segment.Before, segment.RevisionBefore = all[from-1].Sum, all[from-1].Revision
	}
	for try := byte(1); ; try++ {
		segment.Predecessor = backup.Hash{try}
		name, packed := backup.NewPacker().Pack(segment)
		if (name.String() < w.own.String()) == first || from != w.own.First || to != w.own.End.Index {
			w.replace(name.String(), packed)
			return name.String()
		}
	}
}

// Ensure that a segment with another entry, whose sums are those of the cluster's, is never taken for the cluster's, and neither
// for another one: a restore, and a proof, refuse what both lead to, and name both. States before are restored.
func TestRun_sameSums(t *testing.T) {
	for what, forge := range map[string]func(w *twinned) string{
		"taken first":          func(w *twinned) string { return w.twin(w.own.First, w.own.End.Index, true) },
		"taken last":           func(w *twinned) string { return w.twin(w.own.First, w.own.End.Index, false) },
		"over two segments":    func(w *twinned) string { return w.twin(w.own.First, w.next.End.Index, true) },
		"from within":          func(w *twinned) string { return w.twin(w.put, w.own.End.Index, true) },
		"from within, further": func(w *twinned) string { return w.twin(w.put, w.next.End.Index, true) },
	} {
		w := newTwinned(t)
		name := forge(w)
		for _, target := range []backup.Target{{}, {Index: w.put}, {Index: w.next.End.Index}} {
			for _, sole := range []bool{false, true} {
				s, err := w.sole(target, sole)
				two := (*replay.TwinsError)(nil)
				if !errors.As(err, &two) || two.Differ != w.put || !strings.Contains(err.Error(), name) {
					t.Fatalf("%s: %v, one history %v: %+v, %v", what, target, sole, s, err)
				}
				if damage := (*fetch.DamageError)(nil); !errors.As(err, &damage) {
					t.Errorf("%s: it is no finding of a proof: %v", what, err)
				}
			}
		}
		w.restoresOne(what, w.put-1)
		w.place.Remove(name)
		w.restoresOne(what+", removed", w.put)
	}
}

// Ensure that a state goes on by no segment that has a twin with other entries.
func TestState_Extend_sameSums(t *testing.T) {
	w := newTwinned(t)
	c := w.catalog()
	o := replay.Options{Store: w.place, FS: files.Disk, Dir: t.TempDir() + "/scratch", OpenEngine: w.open}
	s, err := replay.Run(t.Context(), o, c, backup.Target{Index: w.own.First - 1})
	if err != nil {
		t.Fatal(err)
	}
	w.twin(w.own.First, w.own.End.Index, true)
	if err := s.Extend(t.Context(), o, w.catalog(), backup.Target{}); !errors.Is(err, replay.ErrUndecided) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that twins without number let no plan read without bound, and that states before them can be had; and that twins with the
// same entries refuse nothing.
func TestRun_manyTwins(t *testing.T) {
	w := newTwinned(t)
	w.forged = w.items()[w.put].Entry.Payload // the same entries
	w.twin(w.own.First, w.next.End.Index, true)
	w.twin(w.put, w.own.End.Index, true)
	w.honest("the same entries", backup.Target{}, w.index)
	for i := range backup.MaxStrays + 1 {
		name := w.own.SegmentName
		name.Hash = backup.HashOf([]byte{byte(i), byte(i >> 8)})
		w.replace(name.String(), []byte("x"))
	}
	store := &counted{Store: w.place}
	_, err := replay.Run(t.Context(), replay.Options{Store: store, FS: files.Disk, Dir: t.TempDir() + "/scratch", OpenEngine: w.open},
		w.catalog(), backup.Target{})
	if err == nil || !strings.Contains(err.Error(), "lead where others do") || store.segments > 4*backup.MaxStrays {
		t.Errorf("%d segments read, %v", store.segments, err)
	}
	w.restoresOne("before them", w.own.First-1)
}

// Ensure that more segments with the plan's entries than may differ from it refuse no restore: members that ship at once, or in turns that
// change all the time, leave such.
func TestRun_manyOverlaps(t *testing.T) {
	w := newTwinned(t)
	w.forged = w.items()[w.put].Entry.Payload // the same entries
	content, _ := w.place.Bytes(w.own.String())
	segment, err := backup.Unpack(&w.own.SegmentName, content)
	if err != nil {
		t.Fatal(err)
	}
	for i := range backup.MaxStrays + 50 {
		segment.Predecessor = backup.Hash{1, byte(i), byte(i >> 8)}
		name, packed := backup.NewPacker().Pack(segment)
		w.replace(name.String(), packed)
	}
	w.honest("beside the same entries", backup.Target{}, w.index)
}
