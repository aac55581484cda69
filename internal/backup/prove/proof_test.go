package prove_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Ensure that a damaged segment which another one replaces is counted once, though the log goes on from a base that was compared
// and is restored anew from it.
func TestRun_damagedOnce(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	n := len(c.Bases)
	s.place.Remove(c.Bases[n-1].String())
	var name string
	for i := range c.Segments {
		if c.Segments[i].End.Index == c.Bases[n-2].Index+3 {
			name = s.twin(&c.Segments[i])
		}
	}
	content, _ := s.place.Bytes(name)
	s.place.Flip(name, len(content)/2)
	o := s.options()
	o.After = c.Bases[0].Hash
	p, err := s.prove(o)
	if err != nil || len(p.Damaged) != 1 || !strings.Contains(p.Damaged[0].Error(), name) || p.At != s.heads[len(s.heads)-1] {
		t.Errorf("got %+v, %v", p, err)
	}
}

// twin puts a segment with the same entries as another one, as a shipper does that finds that damaged, and returns the name of
// the first one of the two.
func (s *shipped) twin(of *backup.Stored) string {
	s.t.Helper()
	content, _ := s.place.Bytes(of.String())
	segment, err := backup.Unpack(&of.SegmentName, content)
	if err != nil {
		s.t.Fatal(err)
	}
	segment.Predecessor = of.Hash
	twin, packed := backup.NewPacker().Pack(segment)
	s.put(twin.String(), packed)
	return min(of.String(), twin.String())
}

// away is a place that is away when an object is read.
type away struct {
	objects.Store
	name string
}

func (a away) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if name == a.name {
		return nil, objects.ErrUnreachable
	}
	return a.Store.Get(ctx, name, offset, length)
}

// Ensure that a proof which found a damaged object, and ended since the place went away, is no verdict: others may replace it.
func TestRun_damagedThenAway(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	n := len(c.Bases)
	damaged := c.Bases[n-2].String()
	content, _ := s.place.Bytes(damaged)
	s.place.Flip(damaged, len(content)/2)
	o := s.options()
	o.After = c.Bases[0].Hash
	s.place.Remove(c.Bases[n-1].String())
	o.Store = away{s.place, c.Segments[len(c.Segments)-1].String()}
	if p, err := s.prove(o); !errors.Is(err, objects.ErrUnreachable) || !strings.Contains(err.Error(), damaged) || prove.Verdict(err) {
		t.Errorf("the end of the log is away: %+v, %v", p, err)
	}
	o.After, o.Store = c.Bases[n-2].Hash, away{s.place, c.Bases[0].String()}
	if p, err := s.prove(o); !errors.Is(err, objects.ErrUnreachable) || !strings.Contains(err.Error(), damaged) || prove.Verdict(err) {
		t.Errorf("the first base is away: %+v, %v", p, err)
	}
}

// Ensure that bases to whose states the log does not lead are counted: one that a member made of another state, and the next one,
// which is compared with nothing then, are not called missing.
func TestRun_apart(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	other := c.Bases[1]
	content, _ := s.place.Bytes(other.String())
	m, err := backup.OpenManifest(&other.BaseName, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Sum++
	name, content := m.Encode()
	s.place.Remove(other.String())
	s.put(name.String(), content)
	o := s.options()
	o.After = c.Bases[0].Hash
	if p, err := s.prove(o); err != nil || p.Apart != 2 || p.Bases != len(c.Bases)-3 || len(p.Damaged) > 0 || p.Base != c.Bases[0] {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, b := range c.Bases[2:] {
		s.place.Remove(b.String())
	}
	if p, err := s.prove(o); err != nil || p.Apart != 1 || p.At != s.heads[len(s.heads)-1] {
		t.Errorf("it is the last one: got %+v, %v", p, err)
	}
}

// Ensure that a base which is damaged keeps none after it from being compared, also with the log between two bases alone.
func TestCompare_damagedBase(t *testing.T) {
	s := ships(t)
	all := s.catalog()
	name := all.Bases[1].String()
	content, _ := s.place.Bytes(name)
	s.place.Flip(name, len(content)/2)
	p, err := prove.Compare(t.Context(), s.options(), &backup.Catalog{Cluster: all.Cluster, Bases: all.Bases},
		func(from, to *backup.Base) (segments []backup.Stored, short bool, err error) {
			for _, segment := range all.Segments {
				if segment.End.Index > from.Index && segment.First <= to.Index {
					segments = append(segments, segment)
				}
			}
			return segments, false, nil
		})
	if err != nil || p.Bases != len(all.Bases)-2 || len(p.Damaged) != 1 || p.Base != all.Bases[0] || p.Apart > 0 {
		t.Errorf("got %+v, %v, of %d bases", p, err, len(all.Bases))
	}
}

// Ensure that of two bases of the same entry, as two members make that ship one after the other, each is compared with the log;
// and that one is, too, which is there since the other one was proven, whatever the order of their names, and whether or not a
// later base follows.
func TestRun_twins(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	n := len(c.Bases)
	last := c.Bases[n-1]
	twin := s.twinOf(&last)
	for _, row := range []struct {
		after backup.Hash
		bases int
	}{{backup.Hash{}, 2}, {c.Bases[0].Hash, n}, {last.Hash, 1}, {twin.Hash, 1}} {
		o := s.options()
		o.After = row.after
		if p, err := s.prove(o); err != nil || p.Bases != row.bases || p.Base.Index != last.Index || p.Apart > 0 ||
			p.At != s.heads[len(s.heads)-1] {
			t.Errorf("after %v: got %+v, %v", row.after, p, err)
		}
	}
	middle := c.Bases[n-2]
	twin = s.twinOf(&middle)
	for _, after := range []backup.Hash{middle.Hash, twin.Hash} {
		o := s.options()
		o.After = after
		if p, err := s.prove(o); err != nil || p.Bases != 3 || p.Base.Index != last.Index {
			t.Errorf("a later one follows: got %+v, %v", p, err)
		}
	}
}

// twinOf puts a base of the same state as another one, and with the same objects, as another member makes it.
func (s *shipped) twinOf(base *backup.Base) backup.BaseName {
	s.t.Helper()
	content, _ := s.place.Bytes(base.String())
	m, err := backup.OpenManifest(&base.BaseName, content, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	m.Member++
	name, content := m.Encode()
	s.put(name.String(), content)
	return name
}

// Ensure that a base with other contents is found which another member made of the entry of the last base that was proven, after
// that proof.
func TestRun_twinDiffers(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	last := c.Bases[len(c.Bases)-1]
	content, _ := s.place.Bytes(last.String())
	made := backuptest.Spoil(t, s.place, c, &last, open)
	s.put(last.String(), content)
	if n := len(s.catalog().Bases); n != len(c.Bases)+1 {
		t.Fatalf("%d bases", n)
	}
	o := s.options()
	o.After = last.Hash
	if p, err := s.prove(o); !errors.Is(err, prove.ErrContents) || !strings.Contains(err.Error(), made) {
		t.Errorf("got %+v, %v", p, err)
	}
}
