package ship_test

import (
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that a member continues no names that somebody else made up: of a time that has not come, of entries that it has not
// applied, or of bases that no member reported. The sum of entry i is i.
func TestBegin_falseNames(t *testing.T) {
	const now, hour, applied = int64(1_790_000_000_000), int64(3600_000), 100
	base := func(index consensus.Index, time int64, hash byte) backup.Base {
		return backup.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: index, Sum: uint64(index)},
			Moment: backup.Moment{Revision: 1, Time: time}, Hash: backup.Hash{hash}}}
	}
	segment := func(first, end consensus.Index, time int64) backup.Stored {
		return backup.Stored{SegmentName: backup.SegmentName{Cluster: cluster, First: first, Before: uint64(first - 1),
			End: backup.Point{Index: end, Sum: uint64(end)}, Moment: backup.Moment{Revision: 1, Time: time},
			Hash: backup.Hash{byte(end), byte(time >> 40)}}}
	}
	known := []kv.BackupBase{{Index: 50, Hash: [32]byte{1}}}
	for name, row := range map[string]struct {
		bases       []backup.Base
		segments    []backup.Stored
		known       []kv.BackupBase
		from, lost  consensus.Index
		base, after byte
	}{
		"as it was":       {[]backup.Base{base(50, now-hour, 1)}, []backup.Stored{segment(51, 90, now-1)}, known, 90, 0, 1, 90},
		"clocks differ":   {[]backup.Base{base(50, now-hour, 1)}, []backup.Stored{segment(51, 90, now+hour)}, known, 90, 0, 1, 90},
		"a false base":    {[]backup.Base{base(50, now-hour, 1), base(90, now, 2)}, nil, known, 50, 0, 1, 0},
		"nobody is known": {[]backup.Base{base(50, now-hour, 1), base(90, now, 2)}, nil, nil, 90, 0, 2, 0},
		"a base to come":  {[]backup.Base{base(50, now-hour, 1), base(90, 1<<61, 2)}, nil, nil, 50, 0, 1, 0},
		"a segment to come": {[]backup.Base{base(50, now-hour, 1)}, []backup.Stored{segment(51, 80, now), segment(51, 90, 1<<61),
			segment(81, 90, 1<<61)}, known, 80, 0, 1, 80},
		"not applied yet": {[]backup.Base{base(50, now-hour, 1), base(1<<40, now, 2)}, []backup.Stored{segment(51, 1<<39, now)},
			nil, 50, 0, 1, 0},
		"nothing else": {[]backup.Base{base(1<<40, now, 2), base(90, 1<<61, 3)}, nil, nil, applied, 90, 0, 0},
		"a clock ahead": {[]backup.Base{base(50, now+5*hour, 1)}, []backup.Stored{segment(51, 90, now+6*hour)}, known,
			applied, 90, 0, 0},
		"a clock ahead, and nobody is known": {[]backup.Base{base(50, now+5*hour, 1)},
			[]backup.Stored{segment(51, 90, now+6*hour)}, nil, applied, 90, 0, 0},
	} {
		c := &backup.Catalog{Cluster: cluster, Bases: row.bases, Segments: row.segments}
		c.Sort()
		got := ship.Begin(&ship.Found{Catalog: c, Applied: applied, Now: now, Known: row.known,
			Own: func(i consensus.Index) (uint64, bool) { return uint64(i), i <= applied }})
		if got.Applied != row.from || got.Lost != row.lost || (got.Base == nil) != (row.base == 0) ||
			got.Base != nil && got.Base.Hash[0] != row.base || (got.Continue == nil) != (row.after == 0) ||
			got.Continue != nil && got.Continue.Hash[0] != row.after {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	// Entries of another history: what can be restored of it ends where this member's begins, at most.
	c := &backup.Catalog{Cluster: cluster, Bases: []backup.Base{base(50, now, 1), base(1<<40, now, 2)}}
	if got := ship.Begin(&ship.Found{Catalog: c, Applied: applied, Now: now,
		Own: func(consensus.Index) (uint64, bool) { return 0, false }}); got.Lost != 50 || got.Applied != applied {
		t.Errorf("got %+v", got)
	}
}

// Ensure that the time of a name bounds those of later entries for an hour at most.
func TestNew_falseTime(t *testing.T) {
	b := &backup.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: 90, Sum: 90},
		Moment: backup.Moment{Revision: 1, Time: 1 << 61}}}
	s := ship.New(ship.Config{Cluster: cluster, Member: 3, SealAfter: 1}, ship.Start{Applied: 90, Base: b}, 1000)
	s.Applied(1000, batch(91, 91))
	s.Tick(2000)
	for _, op := range s.Take() {
		if name, err := backup.ParseSegment(op.Name); err == nil && name.Time <= 1000+3600_000 {
			return
		}
	}
	t.Error("no segment of this hour")
}

// Ensure that a member goes on after the last segment of its own chain where the list left out what leads there, and makes a base
// at once: nothing is lost, and what is restorable is not known.
func TestBegin_cut(t *testing.T) {
	segment := func(first, end consensus.Index, sum uint64) backup.Stored {
		return backup.Stored{SegmentName: backup.SegmentName{Cluster: cluster, First: first, Before: uint64(first - 1),
			End: backup.Point{Index: end, Sum: sum}, Hash: backup.Hash{byte(end), byte(sum)}}}
	}
	c := &backup.Catalog{Cluster: cluster, Cut: true,
		Bases:    []backup.Base{{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: 10, Sum: 10}}}},
		Segments: []backup.Stored{segment(81, 85, 85), segment(86, 90, 90), segment(91, 95, 7)}}
	found := &ship.Found{Catalog: c, Applied: 100, Now: 1, Own: func(i consensus.Index) (uint64, bool) { return uint64(i), i >= 80 }}
	at := ship.Begin(found)
	if at.Applied != 90 || at.Base != nil || at.Continue == nil || at.Continue.End.Index != 90 || at.Lost != 0 {
		t.Fatalf("got %+v", at)
	}
	s := ship.New(ship.Config{Cluster: cluster, Member: 1}, at, 1)
	if ops := s.Take(); len(ops) != 1 || ops[0].Kind != ship.Checkpoint {
		t.Errorf("it begins %+v", ops)
	}
	if p := s.Progress(); p.Gaps > 0 || p.Lost || p.Restorable.Index != 0 {
		t.Errorf("got %+v", p)
	}
	// Of names that may all be made up, those after what members reported make no gap smaller than it is.
	c.Segments = []backup.Stored{segment(41, 60, 7), segment(61, 100, 7)}
	for restorable, lost := range map[consensus.Index]consensus.Index{0: 10, 55: 55, 70: 70, 99: 99, 100: 0} {
		forged := *found
		forged.Own, forged.Restorable = func(consensus.Index) (uint64, bool) { return 0, false }, restorable
		if at := ship.Begin(&forged); at.Applied != 100 || at.Lost != lost {
			t.Errorf("restorable to %d: %+v", restorable, at)
		}
	}
}

// Ensure that a gap has its note where the list lacks what members reported, as where somebody removed objects; and that the note
// begins before the history that was given up when all volumes were rolled back.
func TestBegin_lost(t *testing.T) {
	// Sums of the history that was given up are larger by so much.
	segment := func(first, end consensus.Index, before, after uint64) backup.Stored {
		return backup.Stored{SegmentName: backup.SegmentName{Cluster: cluster, First: first, Before: uint64(first-1) + before,
			End: backup.Point{Index: end, Sum: uint64(end) + after}, Hash: backup.Hash{byte(end)}}}
	}
	base := backup.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: 50, Sum: 50}}}
	sealedBase := base
	sealedBase.Index, sealedBase.Set = 99, 5
	otherBase := backup.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: 94, Sum: 95}}}
	for name, row := range map[string]struct {
		bases            []backup.Base
		segments         []backup.Stored
		restorable, lost consensus.Index
	}{
		"nothing is there":      {nil, nil, 90, 90},
		"it was never there":    {nil, nil, 0, 0},
		"the member is behind":  {nil, nil, 150, 0},
		"all is there":          {nil, nil, 100, 0},
		"the end is gone":       {[]backup.Base{base}, []backup.Stored{segment(51, 60, 0, 0)}, 70, 70},
		"it was not reported":   {[]backup.Base{base}, []backup.Stored{segment(51, 75, 0, 0)}, 70, 75},
		"it was given up":       {[]backup.Base{base}, []backup.Stored{segment(51, 75, 0, 0), segment(76, 90, 0, 1), segment(91, 99, 1, 1)}, 70, 75},
		"a base was given up":   {[]backup.Base{base, otherBase}, []backup.Stored{segment(51, 75, 0, 0), segment(95, 99, 1, 1)}, 70, 75},
		"of a set of before":    {[]backup.Base{base, sealedBase}, []backup.Stored{segment(51, 75, 0, 0)}, 70, 99},
		"as far as it is known": {[]backup.Base{base}, []backup.Stored{segment(51, 79, 0, 1)}, 70, 79},
	} {
		c := &backup.Catalog{Cluster: cluster, Bases: row.bases, Segments: row.segments}
		c.Sort()
		at := ship.Begin(&ship.Found{Catalog: c, Applied: 100, Now: 1, Restorable: row.restorable,
			Own: func(i consensus.Index) (uint64, bool) { return uint64(i), i >= 80 }})
		if at.Applied != 100 || at.Lost != row.lost || at.Base != nil || at.Continue != nil {
			t.Errorf("%s: got %+v", name, at)
		}
	}
}
