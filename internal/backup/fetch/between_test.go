package fetch_test

import (
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Ensure that the log between two bases is listed without what is before and behind it, no further, and within a bound.
func TestBetween(t *testing.T) {
	base := func(epoch uint64, index int) *backup.Base {
		return &backup.Base{BaseName: backup.BaseName{Cluster: 7, Epoch: epoch, Point: backup.Point{Index: consensus.Index(index)}}}
	}
	place := many{segments: 3 * fetch.LeastSegments} // of the entries from 11 on
	for _, row := range []struct {
		from, to, want int
		cut            bool
	}{
		{10, 11, 1, false}, {500, 2600, 2100, false}, {10, 10 + fetch.LeastSegments, fetch.LeastSegments, false},
		{1000, 1001 + fetch.LeastSegments, fetch.LeastSegments, true},
	} {
		from := base(0, row.from)
		got, cut, err := fetch.Between(t.Context(), place, nil, from, base(0, row.to), 0)
		if err != nil || len(got) != row.want || cut != row.cut || int(got[0].First) != row.from+1 ||
			cap(got) > fetch.LeastSegments+2*objects.MaxList {
			t.Errorf("%+v: %d segments, cut: %v, %v", row, len(got), cut, err)
		}
	}
	got, _, err := fetch.Between(t.Context(), place, nil, base(0, 10), base(1, 20), 0)
	if err != nil || len(got) != 10 {
		t.Errorf("to another epoch: %d segments, %v", len(got), err)
	}
	marks, err := fetch.Marks(t.Context(), place, fetch.Window{Cluster: 7, Epoch: 1, Most: 100})
	if err != nil || len(marks.Bases) != 1 || len(marks.Segments) > 0 {
		t.Errorf("got %+v, %v", marks, err)
	}
}

// Ensure that a list of marks which leaves out notes of gaps says so, and no other: a hole may be one of theirs.
func TestMarks_cut(t *testing.T) {
	var all []string
	for i := range 1025 {
		g := backup.GapName{Cluster: 7, After: consensus.Index(i + 2), Until: consensus.Index(i + 4), Time: 1}
		all = append(all, g.String())
	}
	for n, cut := range map[int]bool{1024: false, 1025: true} {
		c, err := fetch.Marks(t.Context(), listed{names: all[:n]}, fetch.Window{Cluster: 7, Epoch: 1, Most: 1 << 40})
		if err != nil || c.Cut != cut || len(c.Gaps) != 1024 {
			t.Errorf("%d notes: cut %v, %d, %v", n, c.Cut, len(c.Gaps), err)
		}
	}
}
