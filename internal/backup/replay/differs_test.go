package replay_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
)

// A base whose contents are not what they were when the chain covered them, though all its objects are as they were put, is
// found by the sum of the first entry that meets them. An older base takes its place.
func TestRun_differs(t *testing.T) {
	m := newMember(t, 9, openMem)
	m.write(100)
	m.settle()
	c := m.catalog()
	last := c.Bases[len(c.Bases)-1]
	m.write(40)
	m.spoil(last)
	m.settle()
	s := m.restores(backup.Target{Index: m.index - 5}, m.index-5)
	if len(s.Damaged) != 1 || !errors.Is(s.Damaged[0], replay.ErrDiffers) {
		t.Fatalf("told %v", s.Damaged)
	}
	m.blamed(s.Damaged[0])
	bases := m.catalog().Bases
	m.place.Remove(bases[0].String()) // it has no values
	for _, base := range bases[1:] {
		if base.Index < m.index-5 {
			m.spoil(base)
		}
	}
	if s, err := m.run(backup.Target{Index: m.index - 5}); !errors.Is(err, replay.ErrDiffers) {
		t.Errorf("got %v, %v", s, err)
	}
}

// blamed wants an error to name a base, and no segment: who reads it must not remove a good one.
func (m *member) blamed(err error) {
	m.t.Helper()
	name := ""
	for _, base := range m.catalog().Bases {
		if damage := (*fetch.DamageError)(nil); errors.As(err, &damage) && damage.Name == base.String() {
			name = damage.Name
		}
	}
	if name == "" || strings.Contains(err.Error(), backup.LogPrefix) ||
		!strings.Contains(err.Error(), "the state does not have the sum that the cluster's had") {
		m.t.Errorf("no base is blamed, or a segment is: %v", err)
	}
}

// Ensure that a state that cannot be extended since its entries differ calls nothing damaged: either may be, the base or a segment.
func TestState_Extend_differs(t *testing.T) {
	m := newMember(t, 9, openMem)
	m.write(100)
	m.settle()
	bases := m.catalog().Bases
	m.write(40)
	m.spoil(bases[len(bases)-1])
	m.settle()
	c := m.catalog()
	bases = c.Bases
	for i := range bases {
		only := &backup.Catalog{Cluster: c.Cluster, Bases: bases[i : i+1], Segments: c.Segments}
		o := replay.Options{Store: m.place, FS: files.Disk, Dir: t.TempDir() + "/scratch", OpenEngine: m.open}
		s, err := replay.Run(t.Context(), o, only, backup.Target{Index: bases[i].Index})
		if err != nil {
			continue // no log leads on from it
		}
		err = s.Extend(t.Context(), o, c, backup.Target{Index: m.index - 5})
		if closing := s.Close(); closing != nil {
			t.Fatal(closing)
		}
		if damage := (*fetch.DamageError)(nil); errors.As(err, &damage) {
			t.Fatal(err)
		}
		if errors.Is(err, replay.ErrUndecided) {
			return
		}
	}
	t.Error("all bases lead on")
}

// spoil replaces a base by one of the same state whose store has other values.
func (m *member) spoil(base backup.Base) {
	m.t.Helper()
	var store engine.Engine
	s, err := replay.Run(m.t.Context(), replay.Options{Store: m.place, FS: files.Disk, Dir: m.t.TempDir() + "/scratch",
		OpenEngine: func(dir string) (_ engine.Engine, err error) {
			store, err = m.open(dir)
			return store, err
		}}, m.catalog(), backup.Target{Index: base.Index})
	if err != nil {
		m.t.Fatal(err)
	}
	batch := store.NewBatch()
	iter, err := store.NewIter([]byte("d"), []byte("e"))
	if err != nil {
		m.t.Fatal(err)
	}
	for ok := iter.First(); ok; ok = iter.Next() {
		if value := bytes.Clone(iter.Value()); len(value) > 12 {
			value[len(value)-1]++
			batch.Set(bytes.Clone(iter.Key()), value)
		}
	}
	if err := errors.Join(iter.Close(), batch.Commit(), batch.Close()); err != nil {
		m.t.Fatal(err)
	}
	p := perform.Performer{Store: m.place, FS: files.Disk, Dir: m.t.TempDir() + "/checkpoint",
		Checkpoint: checkpointOf(store, s.Machine)}
	made := p.Do(m.t.Context(), &ship.Op{Kind: ship.Checkpoint}).Made
	for _, f := range made.Files {
		if o := p.Do(m.t.Context(), &ship.Op{Kind: ship.PutFile, Name: backup.FileName(cluster, f.Hash), File: f}); o.Result != ship.OK {
			m.t.Fatal(o)
		}
	}
	made.Cluster, made.Time = cluster, base.Time
	name, content := made.Encode()
	m.place.Remove(base.String()) // if it is there
	m.replace(name.String(), content)
	if err := s.Close(); err != nil {
		m.t.Fatal(err)
	}
}
