package fetch_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// Ensure that a member gets the last bases with the log after them, and bases from one on that it names, however many objects a
// place has before them, of other clusters and of other kinds.
func TestRecent(t *testing.T) {
	place := objectstest.NewPlace(1, func() time.Time { return time.UnixMilli(1) })
	put := func(name string) {
		t.Helper()
		if err := place.Put(t.Context(), name, bytes.NewReader(nil), 0); err != nil {
			t.Fatal(err)
		}
	}
	var bases []backup.BaseName
	for cluster := consensus.ClusterID(6); cluster < 9; cluster++ {
		for i := range 30 {
			epoch := uint64(i / 20) // a recovery after the twentieth
			base := backup.BaseName{Cluster: cluster, Epoch: epoch, Point: backup.Point{Index: consensus.Index(i * 10), Sum: uint64(i)},
				Hash: backup.HashOf(fmt.Append(nil, "base", cluster, i))}
			put(base.String())
			if cluster == 7 {
				bases = append(bases, base)
			}
			for first := i*10 + 1; first < i*10+10; first += 3 {
				segment := backup.SegmentName{Cluster: cluster, Epoch: epoch, First: consensus.Index(first),
					End: backup.Point{Index: consensus.Index(first + 2)}, Hash: backup.HashOf(fmt.Append(nil, "log", cluster, first))}
				put(segment.String())
			}
			gap := backup.GapName{Cluster: cluster, After: consensus.Index(i), Until: consensus.Index(i + 2),
				Hash: backup.HashOf(fmt.Append(nil, "gap", cluster, i))}
			put(gap.String())
		}
	}
	for name, row := range map[string]struct {
		from                         backup.Hash
		bases, segments, base, first int
	}{
		"the last":        {backup.Hash{}, 8, 27, 220, 211},
		"from the fifth":  {bases[4].Hash, 26, 81, 40, 31},
		"from the newest": {bases[29].Hash, 8, 27, 220, 211},
		"from the first":  {bases[0].Hash, 30, 90, 0, 1},
		"of another":      {backup.HashOf([]byte("none")), 8, 27, 220, 211},
	} {
		c, err := fetch.Recent(t.Context(), place, fetch.Window{Cluster: 7, Epoch: 1, Most: 1000, From: row.from})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Bases) != row.bases || len(c.Segments) != row.segments || len(c.Gaps) > 0 || c.Foreign != 0 ||
			int(c.Bases[0].Index) != row.base || int(c.Segments[0].First) != row.first || c.Segments[len(c.Segments)-1].End.Index != 299 {
			t.Errorf("%s: %d bases from %v, %d segments from %d", name, len(c.Bases), c.Bases[0].Index, len(c.Segments), c.Segments[0].First)
		}
	}
	twin := bases[4] // another member made it
	twin.Hash = backup.Hash{}
	put(twin.String())
	c, err := fetch.Recent(t.Context(), place, fetch.Window{Cluster: 7, Epoch: 1, Most: 1000, From: bases[4].Hash})
	if err != nil || len(c.Bases) != 27 || c.Bases[0].Index != 40 || c.Bases[1].Index != 40 || c.Segments[0].First != 31 {
		t.Errorf("two of the entry: %+v, %v", c, err)
	}
	if c, err := fetch.Recent(t.Context(), place, fetch.Window{Cluster: 5, Epoch: 1, Most: 1000}); err != nil || len(c.Bases)+len(c.Segments) > 0 {
		t.Errorf("a cluster that has nothing there: %+v, %v", c, err)
	}
}

// Ensure that names of entries that there are not yet, as many as anybody puts there, hide none of those before them, and that a
// list that goes on for ever, or whose reader has gone, ends.
func TestRecent_falseNames(t *testing.T) {
	place := objectstest.NewPlace(1, time.Now)
	put := func(name string) {
		t.Helper()
		if err := place.Put(t.Context(), name, bytes.NewReader(nil), 0); err != nil {
			t.Fatal(err)
		}
	}
	base := func(index int) string {
		b := backup.BaseName{Cluster: 7, Point: backup.Point{Index: consensus.Index(index)}, Hash: backup.HashOf(fmt.Append(nil, index))}
		return b.String()
	}
	segment := func(first int) string {
		s := backup.SegmentName{Cluster: 7, First: consensus.Index(first), End: backup.Point{Index: consensus.Index(first + 2)},
			Hash: backup.HashOf(fmt.Append(nil, first))}
		return s.String()
	}
	put(base(10))
	put(segment(11))
	put(segment(14)) // to entry 16
	for i := range 20 {
		put(base(1<<40 + i))
		put(segment(1<<40 + i))
	}
	c, err := fetch.Recent(t.Context(), place, fetch.Window{Cluster: 7, Epoch: 1, Most: 15})
	if err != nil || len(c.Bases) != 1 || c.Bases[0].Index != 10 || len(c.Segments) != 1 || c.Segments[0].First != 11 {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := fetch.Recent(t.Context(), endless{place}, fetch.Window{Cluster: 7, Epoch: 1, Most: 15}); err == nil || !strings.Contains(err.Error(), "more objects") {
		t.Errorf("an endless list: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fetch.Recent(gone, endless{place}, fetch.Window{Cluster: 7, Epoch: 1, Most: 15}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
}

// endless is a place whose lists do not end, and that does not look at contexts.
type endless struct{ objects.Store }

func (endless) List(_ context.Context, prefix, after string, _ int) ([]objects.Info, bool, error) {
	return []objects.Info{{Name: cmp.Or(after, prefix) + "x"[:min(1, max(0, 64-len(after)))]}}, true, nil
}

// many is a place with a base, so many segments of one entry each, a base after all but some, and those.
type many struct {
	objects.Store
	segments, behind int
}

func (m many) name(segment int) string {
	s := backup.SegmentName{Cluster: 7, First: consensus.Index(segment + 11), End: backup.Point{Index: consensus.Index(segment + 11)}}
	return s.String()
}

func (m many) List(_ context.Context, prefix, after string, limit int) (found []objects.Info, more bool, err error) {
	switch {
	case strings.HasPrefix(prefix, backup.BasePrefix):
		for _, index := range []int{10, 10 + m.segments - m.behind} {
			base := backup.BaseName{Cluster: 7, Point: backup.Point{Index: consensus.Index(index)}}
			found = append(found, objects.Info{Name: base.String()})
		}
	case strings.HasPrefix(prefix, backup.LogPrefix):
		first := sort.Search(m.segments, func(i int) bool { return m.name(i) > after })
		for i := first; i < min(m.segments, first+limit); i++ {
			found = append(found, objects.Info{Name: m.name(i)})
		}
		more = first+limit < m.segments
	}
	return found, more, nil
}

// Ensure that what a member holds of a place has a bound by its memory, that it has the end of the log in any case, and that no
// base is left from which nothing leads on.
func TestRecent_memory(t *testing.T) {
	const least = fetch.LeastSegments
	for _, row := range []struct {
		all, behind int
		memory      int64
		want, bases int
		cut         bool
	}{
		{least, 100, 0, least, 2, false}, {least + 1, 100, 0, least, 1, true}, {2 * least, 100, 0, least, 1, true},
		{2 * least, least, 0, least, 1, true}, {2 * least, least + 1, 0, least, 0, true}, {2 * least, 100, 1 << 30, 2 * least, 2, false},
		{2 * least, 100, 192 * least, least * 3 / 2, 1, true}, {6 * least, 100, 1 << 40, 1 << 17, 1, true},
		{least, 100, 128 * 1000, 1000, 1, true},
	} {
		c, err := fetch.Recent(t.Context(), many{segments: row.all, behind: row.behind}, fetch.Window{Cluster: 7, Epoch: 1, Most: 1 << 40, Memory: row.memory})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(c.Segments); got != row.want || c.Cut != row.cut || len(c.Bases) != row.bases ||
			int(c.Segments[got-1].First) != row.all+10 {
			t.Errorf("%+v: %d segments to %v, cut: %v, %d bases", row, got, c.Segments[got-1].First, c.Cut, len(c.Bases))
		}
		if most := max(row.memory, 128*least) + 128*objects.MaxList; int64(cap(c.Segments))*int64(unsafe.Sizeof(c.Segments[0])) > most {
			t.Errorf("%+v: room for %d segments of %d bytes", row, cap(c.Segments), unsafe.Sizeof(c.Segments[0]))
		}
	}
}

// Ensure that a base has fewer segments behind it than any member that takes over sees.
func TestRecent_baseAfter(t *testing.T) {
	if ship.DefaultBaseAfter > fetch.LeastSegments*9/10 {
		t.Errorf("a base after %d segments, and %d are seen", ship.DefaultBaseAfter, fetch.LeastSegments)
	}
}
