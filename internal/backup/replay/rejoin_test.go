package replay_test

import (
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
)

// forks puts a segment of entries that the cluster never had, after a base, which agrees with its own sums; and one of garbage
// that claims to lead from there to the end of a true one. A plan takes them first.
func (m *member) forks(base *backup.Base, entries int, back *backup.Stored) {
	m.t.Helper()
	s, err := m.run(backup.Target{Index: base.Index})
	if err != nil {
		m.t.Fatal(err)
	}
	before := s.Machine.Chain()
	fork := &backup.Segment{Cluster: cluster, Member: 3, Since: before.Since, Before: before.Sum,
		RevisionBefore: s.Machine.Store().Revision()}
	for i := range entries {
		command := kv.Command{Put: &kv.PutOp{Key: []byte("k1"), Value: []byte{'f', byte(i)}}}
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
	name, packed := backup.NewPacker().Pack(fork)
	m.replace(name.String(), packed)
	joins := back.SegmentName
	joins.First, joins.Before, joins.Hash = name.End.Index+1, name.End.Sum, backup.HashOf([]byte("x"))
	if joins.First >= back.First {
		m.t.Fatalf("the plan takes %v first", back)
	}
	m.replace(joins.String(), []byte("garbage"))
}

// Ensure that what somebody made up, and claims to lead back to the cluster's history, makes no true segment one of another
// history, wherever it begins: a restore goes on only from a state of its plan.
func TestRun_rejoins(t *testing.T) {
	m := newMember(t, 9, openMem)
	m.write(100)
	m.settle()
	bases := m.catalog().Bases
	last := bases[len(bases)-1]
	m.write(60)
	m.settle()
	for _, b := range m.catalog().Bases {
		if b.Hash != last.Hash {
			m.place.Remove(b.String())
		}
	}
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
