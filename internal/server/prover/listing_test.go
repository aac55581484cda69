package prover_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// beside lists more names of the log than the place has.
type beside struct {
	objects.Store
	log []objects.Info // sorted
}

func (b *beside) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	if !strings.HasPrefix(prefix, backup.LogPrefix) {
		return b.Store.List(ctx, prefix, after, limit)
	}
	first, _ := slices.BinarySearchFunc(b.log, after+"\x00", func(i objects.Info, name string) int {
		return strings.Compare(i.Name, name)
	})
	last := min(first+limit, len(b.log))
	return b.log[first:last], last < len(b.log), nil
}

// crowds lists more segments of some entries than a member with the least memory lists at all, before those of the cluster.
func (m *member) crowds(entries ...consensus.Index) {
	m.t.Helper()
	b := &beside{Store: m.place}
	var err error
	if b.log, _, err = m.place.List(m.t.Context(), backup.LogPrefix, "", objects.MaxList); err != nil {
		m.t.Fatal(err)
	}
	for _, entry := range entries {
		for i := range 2 * fetch.LeastSegments {
			s := backup.SegmentName{Cluster: backuptest.Cluster, First: entry, Before: uint64(i), End: backup.Point{Index: entry}}
			b.log = append(b.log, objects.Info{Name: s.String()})
		}
	}
	slices.SortFunc(b.log, func(x, y objects.Info) int { return strings.Compare(x.Name, y.Name) })
	m.o.Open = func(string) (objects.Store, func(), error) { return b, func() {}, nil }
}

// Ensure that bases which are no more in the list of the end, since a member has no memory for all segments since the last base that
// was proven, are compared nevertheless; and that a proof which could not compare one says so, and the next one tries again.
func TestProver_Run_between(t *testing.T) {
	m := newMember(t)
	bases := m.catalog().Bases
	first, second := bases[0], bases[1]
	for _, b := range bases[2:] {
		m.place.Remove(b.String())
	}
	last := m.heads[len(m.heads)-1]
	m.row.Progress.Restorable.Index, m.row.Progress.Sum = uint64(last.Index), last.Sum
	began := m.row.Proofs
	began.Proven.Base = first.Hash
	again := func() kv.BackupProof {
		next := *m.row
		next.Proofs = began
		m.row = &next
		return m.try()
	}
	m.crowds(second.Index + 1)
	if got := again(); !got.Proven || got.Bases != 1 || got.Base != second.Hash || got.Why != "" || got.Entries < 12 {
		t.Errorf("got %+v", got)
	}
	m.crowds(second.Index-2, second.Index+1)
	if got := again(); !got.Proven || got.Bases != 0 || got.Base != first.Hash || !strings.HasPrefix(got.Why, "1 base not compared") {
		t.Errorf("too many between: %+v", got)
	}
	began.Proven.Base = backup.Hash{1} // retention removed it
	m.crowds(second.Index + 1)
	if got := again(); !got.Proven || got.Bases != 1 || got.Base != second.Hash {
		t.Errorf("the last one is gone: %+v", got)
	}
	began.Proven.Base = first.Hash
	open := func(dir string) (engine.Engine, error) {
		return engine.Open(engine.Options{FS: files.Disk, Dir: dir})
	}
	name := backuptest.Spoil(t, m.place, m.catalog(), &second, open)
	spoiled, err := backup.ParseBase(name)
	if err != nil {
		t.Fatal(err)
	}
	m.row.Known = append(m.row.Known, kv.BackupBase{Index: uint64(spoiled.Index), Hash: spoiled.Hash})
	if got := again(); !got.Failed || !strings.Contains(got.Why, name[:60]) || !strings.Contains(got.Why, "contents differ") {
		t.Errorf("other contents: %+v", got)
	}
}
