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

// Ensure that the note of a gap in which an entry lies is found among more than a page of others, and none for what is at its
// ends; and that more notes than anybody lists are an error, none that says that there is no note.
func TestNoted(t *testing.T) {
	note := backup.GapName{Cluster: 7, After: 1500, Until: 1510, Time: 1}
	all := []string{note.String()}
	for i := range 3000 {
		g := backup.GapName{Cluster: 7, After: consensus.Index(i + 2), Until: consensus.Index(i + 3), Time: 1}
		all = append(all, g.String())
	}
	slices.Sort(all)
	for index, want := range map[consensus.Index]bool{1500: false, 1501: true, 1509: true, 1510: false, 3: false, 4000: false} {
		got, err := fetch.Noted(t.Context(), listed{names: all}, 7, index)
		if err != nil || (got != nil) != want || want && *got != note {
			t.Errorf("entry %d: %+v, %v", index, got, err)
		}
	}
	if got, err := fetch.Noted(t.Context(), endlessNotes{}, 7, 1<<40); err == nil || !strings.Contains(err.Error(), "more objects") {
		t.Errorf("%+v, %v", got, err)
	}
}

// endlessNotes is a place with notes of gaps without end.
type endlessNotes struct{ objects.Store }

func (endlessNotes) List(_ context.Context, _, after string, _ int) ([]objects.Info, bool, error) {
	before, _ := backup.ParseGap(after)
	next := backup.GapName{Cluster: 7, After: before.After + 1, Until: before.After + 2}
	return []objects.Info{{Name: next.String()}}, true, nil
}
