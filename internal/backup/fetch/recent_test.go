package fetch_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
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
		c, err := fetch.Recent(t.Context(), place, 7, row.from, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Bases) != row.bases || len(c.Segments) != row.segments || len(c.Gaps) != 30 || c.Foreign != 0 ||
			int(c.Bases[0].Index) != row.base || int(c.Segments[0].First) != row.first || c.Segments[len(c.Segments)-1].End.Index != 299 {
			t.Errorf("%s: %d bases from %v, %d segments from %d", name, len(c.Bases), c.Bases[0].Index, len(c.Segments), c.Segments[0].First)
		}
	}
	if c, err := fetch.Recent(t.Context(), place, 5, backup.Hash{}, 1000); err != nil || len(c.Bases)+len(c.Segments) > 0 {
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
	c, err := fetch.Recent(t.Context(), place, 7, backup.Hash{}, 15)
	if err != nil || len(c.Bases) != 1 || c.Bases[0].Index != 10 || len(c.Segments) != 1 || c.Segments[0].First != 11 {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := fetch.Recent(t.Context(), endless{place}, 7, backup.Hash{}, 15); err == nil || !strings.Contains(err.Error(), "more objects") {
		t.Errorf("an endless list: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fetch.Recent(gone, endless{place}, 7, backup.Hash{}, 15); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
}

// endless is a place whose lists do not end, and that does not look at contexts.
type endless struct{ objects.Store }

func (endless) List(_ context.Context, prefix, after string, _ int) ([]objects.Info, bool, error) {
	return []objects.Info{{Name: cmp.Or(after, prefix) + "x"[:min(1, max(0, 64-len(after)))]}}, true, nil
}
