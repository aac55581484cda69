package survey

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that the bases to compare begin with the one after which they are, and have all others of its entry that members made,
// whatever the order of their names.
func TestBetween(t *testing.T) {
	base := func(index consensus.Index, hash byte) backup.Base {
		return backup.Base{BaseName: backup.BaseName{Point: backup.Point{Index: index}, Hash: backup.Hash{hash}}}
	}
	all := []backup.Base{base(10, 1), base(20, 2), base(20, 3), base(20, 4), base(30, 5), base(40, 6), base(50, 7)}
	for _, row := range []struct {
		after byte
		want  []byte
	}{{1, []byte{1, 2, 3, 4, 5, 6}}, {2, []byte{2, 3, 4, 5, 6}}, {3, []byte{3, 2, 4, 5, 6}}, {4, []byte{4, 2, 3, 5, 6}},
		{5, []byte{5, 6}}, {9, []byte{1, 2, 3, 4, 5, 6}}} {
		c := &backup.Catalog{Bases: slices.Clone(all)}
		l := &listing{catalog: &backup.Catalog{Bases: all[5:]}, after: backup.Hash{row.after}}
		between(c, l, func(backup.Hash) bool { return true })
		var got []byte
		for _, b := range c.Bases {
			got = append(got, b.Hash[0])
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("after %d: got %v, want %v", row.after, got, row.want)
		}
	}
}
