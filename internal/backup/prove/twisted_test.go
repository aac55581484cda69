package prove_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prove"
)

// twists puts a segment with the name and sums of another one, and another last entry, which a plan takes first.
func (s *shipped) twists(of *backup.Stored) (name string) {
	s.t.Helper()
	content, _ := s.place.Bytes(of.String())
	for try := byte(0); ; try++ {
		segment, err := backup.Unpack(&of.SegmentName, content)
		if err != nil {
			s.t.Fatal(err)
		}
		segment.Predecessor = backup.Hash{try}
		e := &segment.Last().Entry
		e.Payload = bytes.Clone(e.Payload)
		e.Payload[len(e.Payload)-1]++
		if twisted, packed := backup.NewPacker().Pack(segment); twisted.String() < of.String() {
			s.put(twisted.String(), packed)
			return twisted.String()
		}
	}
}

// Ensure that segments which somebody made up beside true ones, twisted or unreadable, are named, wherever they are: after the
// first base, between two that are compared, or after the newest one; that they keep no base from being compared, and that no
// base is called damaged: an operator would remove it.
func TestRun_twisted(t *testing.T) {
	for _, readable := range []bool{true, false} {
		for where := range 3 {
			s := ships(t)
			c := s.catalog()
			after, last, bases := c.Bases[where], len(c.Bases)-1, len(c.Bases)-1
			if where == 2 { // the newest base is the second one
				s.place.Remove(c.Bases[last].String())
				after, last, bases = c.Bases[last-1], last-1, bases-1
			}
			made := ""
			for i := range c.Segments {
				if one := &c.Segments[i]; one.First == after.Index+3 {
					made = s.twists(one)
				}
			}
			if content, _ := s.place.Bytes(made); !readable {
				s.place.Flip(made, len(content)/2)
			}
			o := s.options()
			o.After = c.Bases[0].Hash
			p, err := s.prove(o)
			if err != nil || p.At != s.heads[len(s.heads)-1] || p.Bases != bases || p.Base != c.Bases[last] ||
				len(p.Damaged) != 1 || !strings.Contains(p.Damaged[0].Error(), made) || p.Apart+p.Left > 0 {
				t.Errorf("%d, readable %v: got %+v, %v", where, readable, p, err)
			}
		}
	}
}

// Ensure that where a base differs, and only the log between each two bases is held, made-up segments after it make the next base
// neither damaged nor its log lost.
func TestCompare_twisted(t *testing.T) {
	for _, readable := range []bool{true, false} {
		s := ships(t)
		c := s.catalog()
		differs := backuptest.Spoil(t, s.place, c, &c.Bases[1], open)
		all := s.catalog()
		made := ""
		for i := range all.Segments {
			if one := &all.Segments[i]; one.First == all.Bases[1].Index+3 {
				made = s.twists(one)
			}
		}
		if content, _ := s.place.Bytes(made); !readable {
			s.place.Flip(made, len(content)/2)
		}
		all = s.catalog()
		_, err := prove.Compare(t.Context(), s.options(), &backup.Catalog{Cluster: all.Cluster, Bases: all.Bases},
			func(from, to *backup.Base) (segments []backup.Stored, short bool, err error) {
				for _, one := range all.Segments {
					if one.End.Index > from.Index && one.First <= to.Index {
						segments = append(segments, one)
					}
				}
				return segments, false, nil
			})
		parts := fetch.Parts(err)
		if len(parts) == 0 || !strings.Contains(parts[0].Error(), differs) || len(parts) > 2 ||
			len(parts) == 2 && !strings.Contains(parts[1].Error(), made) {
			t.Errorf("readable %v: got %v", readable, err)
		}
	}
}
