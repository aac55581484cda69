package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// twists puts a segment with the names and sums of another one, whose last entry is another one, and which a plan takes first.
func (m *member) twists(of *backup.Stored) (name string) {
	m.t.Helper()
	content, _ := m.place.Bytes(of.String())
	for try := byte(0); ; try++ {
		segment, err := backup.Unpack(&of.SegmentName, content)
		if err != nil {
			m.t.Fatal(err)
		}
		segment.Predecessor = backup.Hash{try}
		e := &segment.Last().Entry
		e.Payload = bytes.Clone(e.Payload)
		e.Payload[len(e.Payload)-1]++
		twisted, packed := backup.NewPacker().Pack(segment)
		if name := twisted.String(); name < of.String() {
			m.replace(name, packed)
			return name
		}
	}
}

// Ensure that segments which somebody made up, with the names and sums of true ones, are named, and blame no base: all bases would
// be left out for them, and nothing could be restored. The base is downloaded once more.
func TestRun_twisted(t *testing.T) {
	t.Run("memory", func(t *testing.T) { runTwisted(t, openMem) })
	t.Run("pebble", func(t *testing.T) { runTwisted(t, openPebble) })
}

func runTwisted(t *testing.T, open opener) {
	t.Helper()
	m, last := aged(t, open, 40)
	var twisted []string
	for _, s := range m.catalog().Segments {
		if s.First > last.Index && len(twisted) < 5 {
			twisted = append(twisted, m.twists(&s))
		}
	}
	store := &counted{Store: m.place}
	s, err := replay.Run(t.Context(), replay.Options{Store: store, FS: files.Disk, Dir: t.TempDir() + "/scratch", OpenEngine: open,
		Parallel: 1}, m.catalog(), backup.Target{})
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, s.Machine); s.At.Index != m.index || got != m.was[m.index] {
		t.Errorf("got entry %d, %s", s.At.Index, got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if store.bases > 2 {
		t.Errorf("%d made-up segments let the base be downloaded %d times", len(twisted), store.bases)
	}
	if len(s.Damaged) != len(twisted) || s.Plan.Base.Hash != last.Hash {
		t.Fatalf("told %v, from %v", s.Damaged, s.Plan.Base)
	}
	// A base that differs is blamed, whatever there is beside.
	m.spoil(last)
	if s, err := m.run(backup.Target{}); !errors.Is(err, replay.ErrDiffers) {
		t.Errorf("got %v, %v", s, err)
	} else {
		m.blamed(err)
	}
}

// counted counts objects that are read.
type counted struct {
	objects.Store
	bases, segments int
}

func (r *counted) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	switch {
	case strings.HasPrefix(name, backup.BasePrefix):
		r.bases++
	case strings.HasPrefix(name, backup.LogPrefix):
		r.segments++
	}
	return r.Store.Get(ctx, name, offset, length)
}

// Ensure that segments which cannot be read, and others replace, let neither the base be read again nor what was applied before:
// a restore would end for nobody who writes to the place.
func TestRun_unreadable(t *testing.T) {
	m, last := aged(t, openMem, 60)
	all := 0
	for _, s := range m.catalog().Segments {
		if s.First > last.Index {
			all++
			name := s.SegmentName
			for try := byte(0); name.String() >= s.String(); try++ {
				name.Hash = backup.HashOf([]byte{try})
			}
			m.replace(name.String(), []byte("x"))
		}
	}
	if all < 5 {
		t.Fatalf("%d segments", all)
	}
	store := &counted{Store: m.place}
	s, err := replay.Run(t.Context(), replay.Options{Store: store, FS: files.Disk, Dir: t.TempDir() + "/scratch", OpenEngine: m.open,
		Parallel: 1}, m.catalog(), backup.Target{})
	if err != nil {
		t.Fatal(err)
	}
	// An object that is damaged is read twice, and the one after it may be read ahead.
	if n := len(s.Damaged); s.At.Index != m.index || n < 3 || store.bases != 1 || store.segments > all+3*n {
		t.Errorf("entry %d, %d objects damaged, %d bases and %d segments of %d read", s.At.Index, n, store.bases, store.segments, all)
	}
	if got := contents(t, s.Machine); got != m.was[m.index] {
		t.Errorf("got %s", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that a made-up segment with an entry that no build reads yet, or none, stops no restore, and is named.
func TestRun_laterEntry(t *testing.T) {
	for what, made := range map[string]consensus.Entry{
		"a later command": {Kind: consensus.EntryCommand, Payload: []byte{0xfe, 1, 2}},
		"a later change":  {Kind: consensus.EntryConfig, Payload: []byte{0xff, 1, 2}},
		"none":            {Kind: consensus.EntryConfig},
	} {
		m := newMember(t, 9, openMem)
		m.write(60)
		m.settle()
		c := m.catalog()
		of := c.Segments[len(c.Segments)-1]
		for _, b := range c.Bases {
			if b.Index > of.First-1 {
				m.place.Remove(b.String())
			}
		}
		content, _ := m.place.Bytes(of.String())
		for try := byte(0); ; try++ {
			segment, err := backup.Unpack(&of.SegmentName, content)
			if err != nil {
				t.Fatal(err)
			}
			segment.Predecessor = backup.Hash{try}
			segment.Last().Entry.Kind, segment.Last().Entry.Payload = made.Kind, made.Payload
			if n := len(segment.Items); n > 1 {
				segment.Items[n-2].Sum++
			}
			if name, packed := backup.NewPacker().Pack(segment); name.String() < of.String() {
				m.replace(name.String(), packed)
				break
			}
		}
		if s := m.restores(backup.Target{}, m.index); len(s.Damaged) != 1 {
			t.Errorf("%s: told %v", what, s.Damaged)
		}
		m.restoresOne(what, m.index)
		m.restoresOne(what, m.index-1)
	}
}

// restoresOne restores an entry as a reader that knows nothing but the place.
func (m *member) restoresOne(what string, index consensus.Index) {
	m.t.Helper()
	f := &forked{before: m, after: m}
	if got, err := f.sole(m.t, backup.Target{Index: index}, nil); err != nil || got != m.was[index] {
		m.t.Errorf("%s, entry %d: %q, %v", what, index, got, err)
	}
}

// Ensure that objects of a form, or a level, of a later build which somebody put beside the cluster's end no restore; and that where
// nothing else leads to the target the refusal tells of the build.
func TestRun_laterForm(t *testing.T) {
	m, base := aged(t, openMem, 40)
	c := m.catalog()
	var of backup.SegmentName
	for _, s := range c.Segments {
		if s.First > base.Index+1 && of.First == 0 {
			of = s.SegmentName
		}
	}
	later := append([]byte("QUORSEG\n"), 99, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4)
	of.First, of.Before, of.Hash = base.Index+1, base.Sum, backup.HashOf(later)
	m.replace(of.String(), later)

	content, _ := m.place.Bytes(base.String())
	made, err := backup.OpenManifest(&base.BaseName, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	made.Level, made.Time = level.Own+1, made.Time+1
	high, copied := made.Encode()
	m.replace(high.String(), copied)
	s := m.restores(backup.Target{}, m.index)
	if len(s.Damaged) != 2 || fetch.Verdict(errors.Join(s.Damaged...), nil) {
		t.Errorf("told %v", s.Damaged)
	}
	m.restoresOne("later forms", m.index)
	m.restoresOne("later forms", of.First+1)

	m.place.Remove(base.String())
	low := (*level.TooLowError)(nil)
	if _, err := m.run(backup.Target{}); !errors.As(err, &low) || fetch.Verdict(err, nil) {
		t.Errorf("got %v", err)
	}
}
