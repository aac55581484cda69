package fetch_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// listed is a place that lists names, and does nothing else.
type listed struct {
	objects.Store
	names []string // sorted
}

func (l listed) List(_ context.Context, prefix, after string, limit int) (found []objects.Info, more bool, err error) {
	i, is := slices.BinarySearch(l.names, max(prefix, after))
	if is && l.names[i] == after {
		i++
	}
	for ; i < len(l.names) && strings.HasPrefix(l.names[i], prefix); i++ {
		if len(found) == limit {
			return found, true, nil
		}
		found = append(found, objects.Info{Name: l.names[i]})
	}
	return found, false, nil
}

// Ensure that a list which leaves out segments behind the first base, since there are more than are held, says so, and no other.
func TestRecent_cut(t *testing.T) {
	base := backup.BaseName{Cluster: 7, Point: backup.Point{Index: 1}}
	all := []string{base.String()}
	for i := range 1<<17 + 1 {
		s := backup.SegmentName{Cluster: 7, First: consensus.Index(i + 2), Before: uint64(i + 1),
			End: backup.Point{Index: consensus.Index(i + 2), Sum: uint64(i + 2)}, Hash: backup.Hash{1}}
		all = append(all, s.String())
	}
	for n, cut := range map[int]bool{1 << 17: false, 1<<17 + 1: true} {
		c, err := fetch.Recent(t.Context(), listed{names: all[:1+n]}, fetch.Window{Cluster: 7, Epoch: 1, Most: 1 << 40, Memory: 1 << 40})
		if err != nil || c.Cut != cut || len(c.Segments) != 1<<17 || c.Segments[1<<17-1].First != consensus.Index(n+1) {
			t.Errorf("%d segments: cut %v, %d, %v", n, c.Cut, len(c.Segments), err)
		}
	}
}

// Ensure that names of an epoch that has not begun, as many as anybody puts there, hide no segment of the log.
func TestRecent_laterEpoch(t *testing.T) {
	var all []string
	for epoch, n := range []int{100, 2 * fetch.LeastSegments} {
		base := backup.BaseName{Cluster: 7, Epoch: uint64(epoch), Point: backup.Point{Index: 1}}
		all = append(all, base.String())
		for i := range n {
			s := backup.SegmentName{Cluster: 7, Epoch: uint64(epoch), First: consensus.Index(i + 2),
				End: backup.Point{Index: consensus.Index(i + 2)}}
			all = append(all, s.String())
		}
	}
	slices.Sort(all)
	c, err := fetch.Recent(t.Context(), listed{names: all}, fetch.Window{Cluster: 7, Most: 1 << 40})
	if err != nil || c.Cut || len(c.Bases) != 1 || len(c.Segments) != 100 || c.Segments[99].Epoch != 0 {
		t.Errorf("%d bases, %d segments, cut: %v, %v", len(c.Bases), len(c.Segments), c.Cut, err)
	}
}

// Ensure that a segment which begins before the first base, and leads on from it, is listed.
func TestRecent_beforeFirstBase(t *testing.T) {
	base := backup.BaseName{Cluster: 7, Point: backup.Point{Index: 871}}
	s := backup.SegmentName{Cluster: 7, First: 870, Before: 1, End: backup.Point{Index: 954, Sum: 2}, Hash: backup.Hash{1}}
	c, err := fetch.Recent(t.Context(), listed{names: []string{base.String(), s.String()}}, fetch.Window{Cluster: 7, Most: 1 << 40})
	if err != nil || len(c.Bases) != 1 || len(c.Segments) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	found, _, err := fetch.Between(t.Context(), listed{names: []string{s.String()}}, nil, &c.Bases[0],
		&backup.Base{BaseName: backup.BaseName{Cluster: 7, Point: backup.Point{Index: 954}}}, 0)
	if err != nil || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Ensure that bases which somebody made up, as many as there are, and notes of retention of entries that there are not yet, hide
// neither the bases that members made nor the log after them.
func TestRecent_falseBases(t *testing.T) {
	base := func(index, n int, hash byte) string {
		b := backup.BaseName{Cluster: 7, Point: backup.Point{Index: consensus.Index(index), Sum: uint64(n)}, Hash: backup.Hash{hash}}
		return b.String()
	}
	var all []string
	for i := range 20 { // of members: at 10, 20, ...
		all = append(all, base(10*i+10, 0, byte(i+1)))
		s := backup.SegmentName{Cluster: 7, First: consensus.Index(10*i + 11), End: backup.Point{Index: consensus.Index(10*i + 20)}}
		all = append(all, s.String())
	}
	for i := range 1500 {
		all = append(all, base(100+i%111, 1+i, 200))
	}
	for _, floor := range []consensus.Index{5, 211} {
		n := backup.KeptName{Cluster: 7, Floor: floor}
		all = append(all, n.String())
	}
	slices.Sort(all)
	known := func(h backup.Hash) bool { return h[0] < 200 }
	w := fetch.Window{Cluster: 7, Most: 210, Known: known}
	for _, row := range []struct {
		from            byte
		bases, segments int
	}{{0, 8, 9}, {5, 16, 17}, {1, 20, 20}} {
		w.From = backup.Hash{row.from}
		c, err := fetch.Recent(t.Context(), listed{names: all}, w)
		if err != nil || c.Cut || len(c.Segments) != row.segments || c.Kept == nil || c.Kept.Floor != 5 {
			t.Fatalf("%+v: %d segments, cut: %v, %+v, %v", row, len(c.Segments), c.Cut, c.Kept, err)
		}
		made := slices.DeleteFunc(c.Bases, func(b backup.Base) bool { return !known(b.Hash) })
		if len(made) != row.bases {
			t.Errorf("%+v: %d bases of members", row, len(made))
		}
	}
	marks, err := fetch.Marks(t.Context(), listed{names: all}, w)
	if err != nil || len(marks.Bases) != 20+1024 || marks.Bases[0].Index != 10 || marks.Kept.Floor != 5 {
		t.Errorf("%d marks, %+v, %v", len(marks.Bases), marks.Kept, err)
	}
	w.Known = func(backup.Hash) bool { return false }
	if c, err := fetch.Recent(t.Context(), listed{names: all}, w); err != nil || len(c.Bases) != 8 {
		t.Errorf("nothing is known: %+v, %v", c, err)
	}
}
