package replay_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/storage/files"
)

var errFull = errors.New("full")

// within restores the latest state on a disk of so many bytes, on which a store takes those that its base has.
func (m *member) within(bytes int64) (*replay.State, error) {
	dir := m.t.TempDir() + "/store"
	return replay.Run(m.t.Context(), replay.Options{Store: m.place, FS: files.Disk, Dir: dir, OpenEngine: m.open, Open: m.reads,
		OneHistory: true, Room: func(needs int64) error {
			if needs > bytes {
				return errFull
			}
			for _, ending := range []string{".base", ".log"} {
				if _, err := os.Stat(dir + ending); err == nil && bytes < 1<<40 {
					return errFull // a copy holds the disk
				}
			}
			return nil
		}}, m.catalog(), backup.Target{})
}

// Ensure that a manifest that somebody made up, with a size that no disk has, refuses no restore: the file at the place is not
// that large. And that a base which is too large for the disk refuses none from another one, and is named if there is none.
func TestRun_tooLargeForDisk(t *testing.T) {
	m := newMember(t, 9, openMem)
	m.write(60)
	m.settle()
	bases := m.catalog().Bases
	last := bases[len(bases)-1]
	made := m.manifest(&last)
	size := made.SizeBytes()
	made.Files[0].Size, made.Time = 1<<61, made.Time+1
	name, content := made.Encode()
	m.replace(name.String(), content)
	s, err := m.within(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	damage := (*fetch.DamageError)(nil)
	if len(s.Damaged) != 1 || !errors.As(s.Damaged[0], &damage) || damage.Of != name.String() || s.At.Index != m.index {
		t.Errorf("entry %d, told %v", s.At.Index, s.Damaged)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	m.place.Remove(name.String())
	if s, err = m.within(size - 1); err == nil { // the first base is smaller
		if s.Plan.Base.Hash == last.Hash || len(s.Damaged) > 0 {
			t.Errorf("from %v, told %v", &s.Plan.Base, s.Damaged)
		}
		err = s.Close()
	}
	if err != nil {
		t.Error(err)
	}
	_, err = m.within(1)
	room := (*backup.RoomError)(nil)
	if !errors.As(err, &room) || !errors.Is(err, errFull) || !strings.Contains(err.Error(), last.String()) ||
		errors.As(err, &damage) {
		t.Errorf("no base fits: %v", err)
	}
}

// Ensure that a disk with room for the base, and not for as much as the log has beside it, refuses no restore.
func TestRun_roomForBase(t *testing.T) {
	m, base := aged(t, openMem, 40)
	size := m.manifest(&base).SizeBytes()
	s, err := m.within(size)
	if err != nil {
		t.Fatal(err)
	}
	if s.At.Index != m.index || s.Plan.LogBytes() == 0 {
		t.Errorf("entry %d, after %d bytes of the log", s.At.Index, s.Plan.LogBytes())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that an entry of a later build, in a segment that somebody made up behind a base of theirs, refuses no restore to which
// an older base leads, and is told of where nothing does.
func TestRun_laterEntryOfOtherBase(t *testing.T) {
	a, b := newMember(t, 5, openMem), newMember(t, 105, openMem)
	a.write(60)
	a.settle()
	b.write(30)
	b.settle()
	bases := b.catalog().Bases
	made := bases[len(bases)-1]
	for _, name := range b.place.Names() {
		if content, _ := b.place.Bytes(name); name == made.String() || strings.HasPrefix(name, backup.FilePrefix) {
			a.replace(name, content)
		}
	}
	first := backup.Base{}
	for _, base := range a.catalog().Bases {
		if base.Index > made.Index {
			a.place.Remove(base.String())
		} else if base.Hash != made.Hash {
			first = base
		}
	}
	to := backup.Stored{}
	for _, s := range a.catalog().Segments {
		if to = s; s.End.Index > made.Index+2 {
			break
		}
	}
	last, own := b.items()[made.Index], a.items()
	content, _ := a.place.Bytes(to.String())
	segment, err := backup.Unpack(&to.SegmentName, content)
	if err != nil {
		t.Fatal(err)
	}
	segment.Before, segment.RevisionBefore, segment.Items = last.Sum, own[made.Index].Revision, nil
	for i := made.Index + 1; i <= to.End.Index; i++ {
		segment.Items = append(segment.Items, own[i])
	}
	segment.Items[0].Entry.Payload = []byte{0xfe, 1, 2}
	name, packed := backup.NewPacker().Pack(segment)
	a.replace(name.String(), packed)
	for _, sole := range []bool{false, true} {
		a.alone("an older base", backup.Target{}, a.index, sole, 0)
	}
	a.place.Remove(first.String())
	if _, err := a.sole(backup.Target{}, false); err == nil || !replay.Later(err) || !strings.Contains(err.Error(), name.String()) {
		t.Errorf("no other base: %v", err)
	}
}
