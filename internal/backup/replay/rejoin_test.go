package replay_test

import (
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
)

// fork returns a segment of entries that the cluster never had, after a base, which agrees with its own sums.
func (m *member) fork(base *backup.Base, entries int, value byte) *backup.Segment {
	m.t.Helper()
	s, err := m.run(backup.Target{Index: base.Index})
	if err != nil {
		m.t.Fatal(err)
	}
	before := s.Machine.Chain()
	fork := &backup.Segment{Cluster: cluster, Member: 3, Since: before.Since, Before: before.Sum,
		RevisionBefore: s.Machine.Store().Revision()}
	for i := range entries {
		command := kv.Command{Put: &kv.PutOp{Key: []byte("forked"), Value: []byte{value, byte(i)}}}
		e := []consensus.Entry{{Index: base.Index + consensus.Index(i+1), Term: 1, Kind: consensus.EntryCommand,
			Payload: command.Append(nil)}}
		if _, err := s.Machine.Apply(e); err != nil {
			m.t.Fatal(err)
		}
		mark := s.Machine.Chain()
		fork.Items = append(fork.Items, backup.Item{Entry: e[0], Time: base.Time, Revision: s.Machine.Store().Revision(),
			Sum: mark.Sum})
	}
	if err := s.Close(); err != nil {
		m.t.Fatal(err)
	}
	return fork
}

// forks puts a fork, and a segment of garbage that claims to lead from there to the end of a true one. A plan takes them first.
func (m *member) forks(base *backup.Base, entries int, back *backup.Stored) {
	m.t.Helper()
	fork := m.fork(base, entries, 'f')
	name, packed := backup.NewPacker().Pack(fork)
	m.replace(name.String(), packed)
	joins := back.SegmentName
	joins.First, joins.Before, joins.Hash = name.End.Index+1, name.End.Sum, backup.HashOf([]byte("x"))
	if joins.First >= back.First {
		m.t.Fatalf("the plan takes %v first", back)
	}
	m.replace(joins.String(), []byte("garbage"))
}

// aged is a member with a backup of which the last base alone is left, and of entries after that.
func aged(t *testing.T, open opener, after int) (*member, backup.Base) {
	t.Helper()
	m := newMember(t, 9, open)
	m.write(100)
	m.settle()
	bases := m.catalog().Bases
	last := bases[len(bases)-1]
	m.write(after)
	m.settle()
	for _, b := range m.catalog().Bases {
		if b.Hash != last.Hash {
			m.place.Remove(b.String())
		}
	}
	return m, last
}

// Ensure that segments which somebody made up, and which end within the one that has entries before a base and after it, let no
// restore leave out that one.
func TestRun_endsWithin(t *testing.T) {
	m, base := aged(t, openMem, 60)
	items := m.items()
	since := m.fork(&base, 1, 0).Since
	for _, s := range m.catalog().Segments {
		m.place.Remove(s.String())
	}
	packer := backup.NewPacker()
	put := func(first, last consensus.Index, then []backup.Item) {
		before := items[first-1]
		s := &backup.Segment{Cluster: cluster, Member: 3, Since: since, Before: before.Sum, RevisionBefore: before.Revision}
		for i := first; i <= last; i++ {
			s.Items = append(s.Items, items[i])
		}
		s.Items = append(s.Items, then...)
		name, packed := packer.Pack(s)
		m.replace(name.String(), packed)
	}
	put(base.Index-5, base.Index+9, nil)
	put(base.Index+10, m.index, nil)
	for i := range 5 {
		put(base.Index-5, base.Index, m.fork(&base, 3, byte(i)).Items)
	}
	m.restores(backup.Target{}, m.index)
	m.restores(backup.Target{Index: base.Index + 4}, base.Index+4)
}

// Ensure that what somebody made up, and claims to lead back to the cluster's history, makes no true segment one of another
// history, wherever it begins: a restore goes on only from a state of its plan.
func TestRun_rejoins(t *testing.T) {
	m, last := aged(t, openMem, 60)
	var after []backup.Stored
	for _, s := range m.catalog().Segments {
		if s.End.Index > last.Index {
			after = append(after, s)
		}
	}
	if len(after) < 4 {
		t.Fatalf("%d segments", len(after))
	}
	for _, back := range []*backup.Stored{&after[2], &after[3]} {
		m.forks(&last, int(after[1].End.Index-last.Index)-1, back)
	}
	for _, want := range []consensus.Index{m.index, after[2].End.Index + 1} {
		s, err := replay.Run(t.Context(), replay.Options{Store: m.place, FS: files.Disk, Dir: t.TempDir() + "/scratch",
			OpenEngine: m.open}, m.catalog(), backup.Target{Index: want})
		if err != nil {
			t.Fatalf("entry %d: %v", want, err)
		}
		if got := contents(t, s.Machine); s.At.Index != want || got != m.was[want] {
			t.Errorf("entry %d: got entry %d, %s; want %s", want, s.At.Index, got, m.was[want])
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
