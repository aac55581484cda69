package prover_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// forge puts segments that continue a base which members made, and lead to another state of the last entry, a millisecond earlier
// than that of the cluster, and returns that state.
func (m *member) forge(after consensus.Index) (end backup.Head) {
	m.t.Helper()
	other := objectstest.NewPlace(4, time.Now)
	var commands []kv.Command
	for i := range m.heads {
		value := strings.Repeat("v", 50)
		if consensus.Index(i) >= after {
			value = "forged"
		}
		commands = append(commands, kv.Command{Put: &kv.PutOp{Key: []byte{'k', byte(i)}, Value: []byte(value)}})
	}
	backuptest.Ship(m.t, other, commands)
	c, err := fetch.Catalog(m.t.Context(), other, backuptest.Cluster)
	if err != nil {
		m.t.Fatal(err)
	}
	packer := backup.NewPacker()
	for i := range c.Segments {
		if c.Segments[i].First <= after {
			continue
		}
		content, _ := other.Bytes(c.Segments[i].String())
		s, err := backup.Unpack(&c.Segments[i].SegmentName, content)
		if err != nil {
			m.t.Fatal(err)
		}
		for j := range s.Items {
			s.Items[j].Time--
		}
		name, packed := packer.Pack(s)
		end = name.Head()
		if err := m.place.Put(m.t.Context(), name.String(), bytes.NewReader(packed), int64(len(packed))); err != nil {
			m.t.Fatal(err)
		}
	}
	return end
}

// Ensure that segments which somebody else put behind a base of members are not proven in the place of those of the cluster, by a
// member that was started anew and does not know the chain's sums of then; that a segment which is too large stops
// no proof, and that where only theirs are left the proof fails.
func TestProver_Run_forgedLog(t *testing.T) {
	m := newMember(t)
	last := m.heads[len(m.heads)-1]
	m.o.Chain = func(consensus.Index) (consensus.Index, apply.ChainMark, bool) {
		return last.Index, apply.ChainMark{}, false
	}
	m.row.Progress.Restorable.Index, m.row.Progress.Sum = uint64(last.Index), last.Sum
	forged := m.forge(9)
	if newest, _ := m.catalog().Newest(); newest != forged || forged.Index != last.Index {
		t.Fatalf("%+v does not hide %+v", forged, newest)
	}
	large := strings.Repeat("x", int(m.o.ObjectBytes)+1)
	name := backup.SegmentName{Cluster: backuptest.Cluster, First: 9, Before: 1, End: backup.Point{Index: 10, Sum: 1},
		Hash: backup.HashOf([]byte(large))}
	if err := m.place.Put(t.Context(), name.String(), strings.NewReader(large), int64(len(large))); err != nil {
		t.Fatal(err)
	}
	if got := m.try(); !got.Proven || got.Damaged > 0 || got.Point.Time != last.Time {
		t.Errorf("got %+v, want the state of %d", got, last.Time)
	}
	m.place.Remove(name.String())
	for _, s := range m.catalog().Segments {
		if s.End == last.Point {
			m.place.Remove(s.String())
		}
	}
	for _, b := range m.catalog().Bases {
		if b.Point == last.Point {
			m.place.Remove(b.String())
		}
	}
	if got := m.try(); !got.Failed || !strings.Contains(got.Why, "another history of this cluster") {
		t.Errorf("the end is gone: %+v", got)
	}
}

// endsBySegment lets nothing but a segment end with the last state, and returns its name.
func (m *member) endsBySegment() (name string) {
	m.t.Helper()
	last := m.heads[len(m.heads)-1]
	m.row.Progress.Restorable.Index, m.row.Progress.Sum = uint64(last.Index), last.Sum
	for _, b := range m.catalog().Bases {
		if b.Point == last.Point {
			m.place.Remove(b.String())
		}
	}
	for _, s := range m.catalog().Segments {
		if s.End == last.Point {
			name = s.String()
		}
	}
	return name
}

// Ensure that a proof names the damaged segment which ends with the state that was reported, and not what else the place has.
func TestProver_Run_damagedEnd(t *testing.T) {
	m := newMember(t)
	name := m.endsBySegment()
	m.forge(9)
	content, _ := m.place.Bytes(name)
	m.place.Flip(name, len(content)/2)
	if got := m.try(); !got.Failed || !strings.Contains(got.Why, name[:80]) || strings.Contains(got.Why, "another history") {
		t.Errorf("got %+v", got)
	}
}

// Ensure that a damaged segment is named of which the place has a twin, as a shipper puts that finds it damaged.
func TestProver_Run_damagedTwin(t *testing.T) {
	m := newMember(t)
	name := m.endsBySegment()
	content, _ := m.place.Bytes(name)
	parsed, err := backup.ParseSegment(name)
	if err != nil {
		t.Fatal(err)
	}
	segment, err := backup.Unpack(&parsed, content)
	if err != nil {
		t.Fatal(err)
	}
	for try := byte(0); ; try++ { // the twin comes after the damaged one
		segment.Predecessor = backup.Hash{try}
		twin, packed := backup.NewPacker().Pack(segment)
		if twin.String() > name {
			if err := m.place.Put(t.Context(), twin.String(), bytes.NewReader(packed), int64(len(packed))); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	m.place.Flip(name, len(content)/2)
	if got := m.try(); !got.Proven || got.Damaged == 0 || !strings.Contains(got.Why, name[:80]) {
		t.Errorf("got %+v", got)
	}
}

// flooded lists names of segments, as many as hide the others.
type flooded struct {
	objects.Store
	names []string
}

func (f flooded) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	found, more, err := f.Store.List(ctx, prefix, after, limit)
	if err != nil || more || !strings.HasPrefix(prefix, backup.LogPrefix) {
		return found, more, err
	}
	i, is := slices.BinarySearch(f.names, after)
	if is {
		i++
	}
	for ; i < len(f.names) && len(found) < limit; i++ {
		found = append(found, objects.Info{Name: f.names[i]})
	}
	return found, i < len(f.names), nil
}

// Ensure that what a list left out for its bound is no damage, and that a proof which fails for that says so.
func TestProver_Run_cut(t *testing.T) {
	m := newMember(t)
	last := m.heads[len(m.heads)-1]
	m.row.Progress.Restorable.Index, m.row.Progress.Sum = uint64(last.Index), last.Sum
	for _, b := range m.catalog().Bases {
		if b.Index == last.Index {
			m.place.Remove(b.String())
		}
	}
	f := flooded{Store: m.place}
	for i := range 1<<17 + 1 {
		s := backup.SegmentName{Cluster: backuptest.Cluster, First: last.Index, Before: 1<<63 + uint64(i),
			End: backup.Point{Index: last.Index, Sum: uint64(i)}}
		f.names = append(f.names, s.String())
	}
	m.o.Open = func(string) (objects.Store, func(), error) { return f, func() {}, nil }
	if got := m.try(); got.Failed || got.Proven || !strings.Contains(got.Why, "more segments after the bases than a member lists") {
		t.Errorf("got %+v", got)
	}
}
