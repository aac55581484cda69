package wal_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/wal"
)

// checkOpened opens a log that may hold anything and checks the invariants of the result.
func checkOpened(t *testing.T, segment []byte) {
	t.Helper()
	log := contents{"0000000000000001.wal": segment}
	_ = wal.Dump(io.Discard, log.with("", nil), dir, keysIf(false))
	fs := log.with("", nil)
	w, got, err := wal.Open(options(fs, 4<<10))
	if err != nil {
		if !refused(err) {
			t.Fatalf("neither opened nor refused: %v", err)
		}
		return
	}
	for i := range got.Entries {
		if want := got.Base.Position.Index + consensus.Index(i) + 1; got.Entries[i].Index != want {
			t.Fatalf("entry %d is at the place of %d", got.Entries[i].Index, want)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m := model{Hard: got.Hard, Base: got.Base, Entries: got.Entries, Witness: got.Witness}
	_, again, err := wal.Open(options(fs, 4<<10))
	if err != nil || m.differs(&again) != "" {
		t.Fatalf("opened again: %v: %s", err, m.differs(&again))
	}
}

func seedBatches() []wal.Batch {
	h := newHistory(8, 40)
	var m model
	var batches []wal.Batch
	for range 12 {
		b := h.batch(&m)
		m.append(&b)
		batches = append(batches, b)
	}
	return batches
}

// withGap is entries with a gap between, in a log that claims a later end than it has.
func withGap() []byte {
	return slices.Concat(wal.Items(wal.Batch{Entries: entries(1, 3, 10)}), wal.CarriedTo(47),
		wal.Items(wal.Batch{Entries: entries(48, 50, 10)}))
}

// Ensure that items of any content under valid checksums are opened or refused.
func FuzzOpen_items(f *testing.F) {
	f.Add(wal.Items(seedBatches()...), []byte{8, 1})
	early := recordOf(4, "early")
	f.Add(wal.Items(wal.Batch{Witness: keep(early)}), wal.Named(entryOf(1, early)))
	f.Add(wal.Items(wal.Batch{Witness: keep(early)}, wal.Batch{Entries: []consensus.Entry{entryOf(1, early)}},
		wal.Batch{Witness: forget(early)}), wal.Named(entryOf(2, early)))
	f.Add([]byte{4}, []byte{7, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(withGap(), []byte{4})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		checkOpened(t, wal.Sealed(identity, wal.Carried(), first, second))
		checkOpened(t, wal.Sealed(identity, slices.Concat(wal.Carried(), first), second))
	})
}

// Ensure that a packed record of any content under a valid checksum is opened or refused, and that any items are the same packed.
func FuzzOpen_packed(f *testing.F) {
	items := wal.Items(seedBatches()...)
	f.Add(s2.Encode(nil, items))
	f.Add(s2.EncodeBest(nil, wal.Items(wal.Batch{Entries: entries(1, 9, 5000)})))
	f.Add(wal.Packed(s2.Encode(nil, items))) // twice
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0})
	f.Add(s2.Encode(nil, withGap()))
	f.Fuzz(func(t *testing.T, block []byte) {
		checkOpened(t, wal.Sealed(identity, wal.Carried(), wal.Packed(block)))
		if len(block) == 0 || block[0] == wal.Packed(nil)[0] { // such items are not packed
			return
		}
		plain := contents{"0000000000000001.wal": wal.Sealed(identity, wal.Carried(), block)}
		packed := contents{"0000000000000001.wal": wal.Sealed(identity, wal.Carried(), wal.Packed(s2.Encode(nil, block)))}
		_, want, err1 := wal.Open(options(plain.with("", nil), 4<<10))
		_, got, err2 := wal.Open(options(packed.with("", nil), 4<<10))
		m := model{Hard: want.Hard, Base: want.Base, Entries: want.Entries, Witness: want.Witness}
		if (err1 == nil) != (err2 == nil) || err1 == nil && m.differs(&got) != "" {
			t.Errorf("packed: %v, as it is: %v: %s", err2, err1, m.differs(&got))
		}
	})
}

// Ensure that a segment of any content is opened or refused.
func FuzzOpen_segment(f *testing.F) {
	f.Add(wal.Sealed(identity, wal.Carried(), wal.Items(seedBatches()...)))
	f.Add(wal.Sealed(identity))
	f.Fuzz(func(t *testing.T, segment []byte) { checkOpened(t, segment) })
}

// Ensure that a log of a newer version is refused as such, whatever else its head holds.
func TestOpen_newerVersion(t *testing.T) {
	segment := wal.Sealed(identity, wal.Carried())
	segment[8] = 3
	log := contents{"0000000000000001.wal": segment}
	if _, _, err := wal.Open(options(log.with("", nil), 0)); !errors.Is(err, wal.ErrNewerVersion) {
		t.Errorf("a newer format: %v", err)
	}
	segment[8] = 0
	if _, _, err := wal.Open(options(log.with("", nil), 0)); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("a format that there never was: %v", err)
	}
	log = contents{"0000000000000001.wal": wal.Sealed(identity, wal.Carried(), []byte{99, 1, 2})}
	if _, _, err := wal.Open(options(log.with("", nil), 0)); !errors.Is(err, wal.ErrNewerVersion) {
		t.Errorf("an unknown item: %v", err)
	}
}
