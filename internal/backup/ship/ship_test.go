package ship_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
)

func batch(first, last consensus.Index) *ship.Batch {
	b := &ship.Batch{Before: uint64(first - 1), RevisionBefore: 1}
	for i := first; i <= last; i++ {
		b.Items = append(b.Items, backup.Item{Entry: consensus.Entry{Index: i, Term: 1, Kind: consensus.EntryNoop}, Revision: 1,
			Sum: uint64(i)})
	}
	return b
}

// The note of a gap comes before all that follows the gap: a member that takes over would continue what it finds, and leave
// the note out.
func TestShipper_noteFirst(t *testing.T) {
	s := ship.New(ship.Config{Cluster: cluster, Member: 3}, ship.Start{Applied: 90, Lost: 50}, 1000)
	s.Applied(1000, batch(91, 95))
	s.Tick(5000)
	ops := s.Take()
	if len(ops) != 1 || !strings.HasPrefix(ops[0].Name, "gap/") {
		t.Fatalf("got %+v", ops)
	}
	note, err := backup.ParseGap(ops[0].Name)
	if err != nil || note.After != 50 || note.Until != 91 {
		t.Errorf("got %+v, %v", note, err)
	}
	s.Done(ops[0].ID, ship.Outcome{})
	var kinds []ship.Kind
	for _, op := range s.Take() {
		kinds = append(kinds, op.Kind)
	}
	if len(kinds) != 2 {
		t.Errorf("got %v, want a segment and a checkpoint", kinds)
	}
}

// A base that is asked for by its time never holds an entry of a later one: its time is that of an entry which the Shipper
// has seen after those in the checkpoint.
func TestShipper_baseTime(t *testing.T) {
	s := ship.New(ship.Config{Cluster: cluster, Member: 3}, ship.Start{Applied: 90}, 1000)
	checkpoint := s.Take()[0]
	s.Done(checkpoint.ID, ship.Outcome{Made: &backup.Manifest{Index: 95, Level: 1, Sum: 95, Revision: 1,
		Files: []backup.File{{Name: "a.sst", Hash: backup.HashOf([]byte("a"))}}}})
	s.Done(s.Take()[0].ID, ship.Outcome{}) // the file
	s.Tick(2000)
	if ops := s.Take(); len(ops) > 0 {
		t.Fatalf("the entries of the base did not come by yet: %+v", ops)
	}
	s.Applied(3000, batch(91, 94))
	s.Applied(4000, batch(95, 96))
	s.Tick(5000)
	for _, op := range s.Take() {
		s.Done(op.ID, ship.Outcome{})
	}
	ops := s.Take()
	if len(ops) != 1 {
		t.Fatalf("got %+v", ops)
	}
	base, err := backup.ParseBase(ops[0].Name)
	if err != nil || base.Time < 4000 {
		t.Errorf("got %+v, %v", base, err)
	}
}

// The time of a base is that of its entry, however long its files take to be summed, and however many entries come by meanwhile.
func TestShipper_baseTimeLater(t *testing.T) {
	for _, long := range []int64{60, 10_000} {
		s := ship.New(ship.Config{Cluster: cluster, Member: 3}, ship.Start{Applied: 90}, 1000)
		checkpoint := s.Take()[0]
		last := 90 + consensus.Index(long)
		for i := consensus.Index(91); i <= last; i++ {
			s.Applied(int64(i-90)*2000, batch(i, i))
			for _, op := range s.Take() {
				s.Done(op.ID, ship.Outcome{})
			}
		}
		s.Done(checkpoint.ID, ship.Outcome{Made: &backup.Manifest{Index: 95, Level: 1, Sum: 95, Revision: 1,
			Files: []backup.File{{Name: "a.sst", Hash: backup.HashOf([]byte("a"))}}}})
		for range 5 {
			for _, op := range s.Take() {
				if base, err := backup.ParseBase(op.Name); err == nil && (base.Time < 10_000 || base.Time > 10_000+2*long) {
					t.Errorf("after %d entries: %+v", long, base)
				}
				s.Done(op.ID, ship.Outcome{})
			}
			s.Tick(int64(long)*2000 + 5000)
		}
		if s.Progress().Base.Index != 95 {
			t.Errorf("after %d entries: %+v", long, s.Progress())
		}
	}
}

// A base by a member whose clock is ahead does not keep the next one from being made.
func TestNew_clockAhead(t *testing.T) {
	base := &backup.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: 90, Sum: 90},
		Moment: backup.Moment{Revision: 1, Time: 1 << 50}, Hash: backup.Hash{9}}}
	s := ship.New(ship.Config{Cluster: cluster, Member: 3}, ship.Start{Applied: 90, Base: base}, 1000)
	if got := s.Progress().BaseHash; got != base.Hash {
		t.Errorf("got %v", got)
	}
	s.Applied(1000, batch(91, 95))
	s.Tick(1000 + ship.DefaultBaseEvery)
	for _, op := range s.Take() {
		if op.Kind == ship.Checkpoint {
			return
		}
	}
	t.Error("no base was begun")
}

// An entry that may not wait for the place is left out, with a note that says so, and a base follows.
func TestShipper_largeEntry(t *testing.T) {
	base := &backup.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: 90, Sum: 90},
		Moment: backup.Moment{Time: 1}}}
	s := ship.New(ship.Config{Cluster: cluster, Member: 3, HeldBytes: 1000}, ship.Start{Applied: 90, Base: base}, 1000)
	b := batch(91, 91)
	b.Items[0].Entry.Payload = make([]byte, 2000)
	s.Applied(1000, b)
	ops := s.Take()
	if len(ops) != 1 || !strings.Contains(string(ops[0].Content), "entry 91 has 2080 bytes") {
		t.Fatalf("got %+v", ops)
	}
	s.Done(ops[0].ID, ship.Outcome{})
	if ops = s.Take(); len(ops) != 1 || ops[0].Kind != ship.Checkpoint {
		t.Errorf("got %+v", ops)
	}
}

// Ensure that the backup's own entries ask for no segment and no base, go along with others, and are sealed after an hour by
// themselves, or when the member ends; and that the state is called the present one meanwhile.
func TestShipper_rests(t *testing.T) {
	const hour = 3600 * 1000
	base := &backup.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: 90, Sum: 90},
		Moment: backup.Moment{Revision: 1, Time: 1}}}
	s := ship.New(ship.Config{Cluster: cluster, Member: 3}, ship.Start{Applied: 90, Base: base}, 1000)
	own := func(now int64, first, last consensus.Index) {
		b := batch(first, last)
		b.Own = len(b.Items)
		s.Applied(now, b)
	}
	put := func(what string, last consensus.Index) {
		t.Helper()
		ops := s.Take()
		if len(ops) != 1 || ops[0].Kind != ship.Put {
			t.Fatalf("%s: got %+v", what, ops)
		}
		if name, err := backup.ParseSegment(ops[0].Name); err != nil || name.End.Index != last {
			t.Fatalf("%s: got %+v, %v", what, name, err)
		}
		s.Done(ops[0].ID, ship.Outcome{})
	}
	own(1000, 91, 91)
	now := int64(1000)
	for ; now < hour; now += 10_000 {
		s.Tick(now)
		if ops := s.Take(); len(ops) > 0 || !s.Progress().Current {
			t.Fatalf("at %d: %+v, %+v", now, ops, s.Progress())
		}
	}
	s.Tick(hour + 1000)
	put("after an hour", 91)
	own(now, 92, 95)
	s.Applied(now+5000, batch(96, 96))
	if s.Progress().Current {
		t.Error("an entry of a client waits")
	}
	s.Tick(now + 6000)
	put("with one of a client", 96)
	own(now+7000, 97, 97)
	s.Seal()
	put("at the end", 97)
	own(now+8000, 98, 99)
	s.Tick(now + ship.DefaultBaseEvery)
	for _, op := range s.Take() {
		if op.Kind == ship.Checkpoint {
			s.Done(op.ID, ship.Outcome{Made: &backup.Manifest{Index: 99, Level: 1, Sum: 99, Revision: 1}})
		} else {
			s.Done(op.ID, ship.Outcome{})
		}
	}
	for range 3 {
		for _, op := range s.Take() {
			s.Done(op.ID, ship.Outcome{})
		}
	}
	if p := s.Progress(); p.Base.Index != 99 {
		t.Fatalf("a base of entries that wait to be sealed: %+v", p)
	}
	own(now+ship.DefaultBaseEvery, 100, 100)
	s.Tick(now + 3*ship.DefaultBaseEvery)
	for _, op := range s.Take() {
		if op.Kind == ship.Checkpoint {
			t.Error("a base of what nobody wrote")
		}
	}
}

// A base needs all its files at the place when its manifest is put: one that was removed since it was put for an earlier base is found,
// and all files of the next try are put.
func TestShipper_missingFile(t *testing.T) {
	s := ship.New(ship.Config{Cluster: cluster, Member: 3, BaseEvery: 60_000}, ship.Start{Applied: 90}, 1000)
	file := backup.File{Name: "a.sst", Hash: backup.HashOf([]byte("a")), Size: 1}
	now, last := int64(1000), backup.Hash{}
	// base makes a base of the entry index, and returns what it puts. The manifest is missing a file if missing says so.
	base := func(index consensus.Index, missing bool) (files, manifests int) {
		for range 20 {
			now += 10_000
			s.Tick(now)
			for _, op := range s.Take() {
				o := ship.Outcome{}
				switch {
				case op.Kind == ship.Checkpoint:
					o.Made = &backup.Manifest{Index: index, Level: 1, Sum: backup.Hex(index), Revision: 1, Files: []backup.File{file}}
				case op.Kind == ship.PutFile:
					files++
				case op.Kind == ship.Put && strings.HasPrefix(op.Name, backup.BasePrefix):
					manifests++
					if len(op.Needs) != 1 || op.Needs[0] != (ship.Needed{Name: backup.FileName(cluster, file.Hash), Size: file.Size}) {
						t.Errorf("needs %v", op.Needs)
					}
					if name, err := backup.ParseBase(op.Name); err == nil {
						last = name.Hash
					}
					if missing {
						o, missing = ship.Outcome{Result: ship.Missing, Why: "gone"}, false
					}
				}
				if op.Kind != ship.Discard {
					s.Done(op.ID, o)
				}
			}
			if s.Progress().Base.Index == index {
				return files, manifests
			}
		}
		t.Fatalf("no base of entry %d: %+v", index, s.Progress())
		return 0, 0
	}
	for i, step := range []struct {
		missing          bool
		files, manifests int
	}{{false, 1, 1}, {false, 0, 1}, {true, 1, 2}, {false, 0, 1}} {
		index := consensus.Index(91 + i)
		s.Applied(now, batch(index, index))
		now += 60_000
		if files, manifests := base(index, step.missing); files != step.files || manifests != step.manifests {
			t.Errorf("base %d: %d files and %d manifests, want %+v", i, files, manifests, step)
		}
		if got := s.Progress().BaseHash; got != last || last == (backup.Hash{}) {
			t.Errorf("base %d: progress names %v, and %v was put", i, got, last)
		}
	}
}

// Ensure that a gap that a member finds when it takes over counts as one.
func TestNew_lost(t *testing.T) {
	s := ship.New(ship.Config{Cluster: cluster, Member: 3}, ship.Start{Applied: 90, Lost: 70}, 1000)
	if ops := s.Take(); len(ops) != 1 || !strings.HasPrefix(ops[0].Name, backup.GapPrefix) || s.Progress().Gaps != 1 {
		t.Errorf("got %+v, %+v", ops, s.Progress())
	}
}

// Ensure that a base is made after so many segments, whatever the time, also if some were put by a member before.
func TestShipper_baseAfter(t *testing.T) {
	s := ship.New(ship.Config{Cluster: cluster, Member: 3, SealAfter: 1, BaseEvery: 1 << 60, BaseAfter: 5},
		ship.Start{Applied: 90, Base: &backup.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: 70, Sum: 70},
			Moment: backup.Moment{Time: 500}}},
			Continue: &backup.Stored{SegmentName: backup.SegmentName{Cluster: cluster, First: 71, End: backup.Point{Index: 90, Sum: 90}}},
			Behind:   3}, 1000)
	made := map[consensus.Index]bool{}
	for index := consensus.Index(91); index < 104; index++ {
		now := int64(index) * 1000
		s.Applied(now, batch(index, index))
		for range 6 {
			now += 10
			s.Tick(now)
			for _, op := range s.Take() {
				o := ship.Outcome{}
				if op.Kind == ship.Checkpoint {
					made[index] = true
					o.Made = &backup.Manifest{Index: index, Level: 1, Sum: backup.Hex(index), Revision: 1}
				}
				if op.Kind != ship.Discard {
					s.Done(op.ID, o)
				}
			}
		}
	}
	if len(made) != 3 || !made[92] || !made[97] || !made[102] {
		t.Errorf("bases of entries %v", made)
	}
}
