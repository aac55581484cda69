package prove_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/prove"
)

// Ensure that bases are compared with no more than the log between two of them, that those for which a part of it is left out are
// counted, and that the next proof begins before them.
func TestCompare(t *testing.T) {
	s := ships(t)
	compare := func(leftOut int) (*prove.Proof, error) {
		all := s.catalog()
		c := &backup.Catalog{Cluster: all.Cluster, Bases: all.Bases}
		n := 0
		return prove.Compare(t.Context(), s.options(), c, func(from, to *backup.Base) (segments []backup.Stored, short bool, err error) {
			if n++; *from != all.Bases[n-1] || *to != all.Bases[n] {
				t.Errorf("%d: from %v to %v", n, from, to)
			}
			for _, segment := range all.Segments {
				if segment.End.Index > from.Index && segment.First <= to.Index {
					segments = append(segments, segment)
				}
			}
			if n == leftOut {
				return segments[1:], true, nil
			}
			return segments, false, nil
		})
	}
	bases := s.catalog().Bases
	n := len(bases)
	if p, err := compare(0); err != nil || p.Bases != n-1 || p.Left != 0 || p.Base != bases[n-1] || len(p.Damaged) > 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	if p, err := compare(n - 1); err != nil || p.Bases != n-2 || p.Left != 1 || p.Base != bases[n-2] {
		t.Errorf("the log before the last base is short: %+v, %v", p, err)
	}
	backuptest.Spoil(t, s.place, s.catalog(), &bases[1], open)
	if p, err := compare(0); !errors.Is(err, prove.ErrContents) || !prove.Verdict(err) {
		t.Errorf("other contents: %+v, %v", p, err)
	}
}

// Ensure that all bases are compared where the last one that was proven is gone, as when retention removed it.
func TestRun_afterIsGone(t *testing.T) {
	s := ships(t)
	bases := s.catalog().Bases
	o := s.options()
	o.After = backup.Hash{1}
	if p, err := s.prove(o); err != nil || p.Bases != len(bases)-1 || p.Base != bases[len(bases)-1] {
		t.Errorf("got %+v, %v, of %d bases", p, err, len(bases))
	}
}
