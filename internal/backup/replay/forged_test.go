package replay_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
)

// twists puts a segment with the names and sums of another one, whose last entry is another one, and which a plan takes first.
func (m *member) twists(of *backup.Stored) (name string) {
	m.t.Helper()
	content, _ := m.place.Bytes(of.String())
	for try := byte(0); ; try++ {
		segment, err := backup.Unpack(&of.SegmentName, content)
		if err != nil {
			m.t.Fatal(err)
		}
		segment.Predecessor = backup.Hash{try}
		e := &segment.Last().Entry
		e.Payload = bytes.Clone(e.Payload)
		e.Payload[len(e.Payload)-1]++
		twisted, packed := backup.NewPacker().Pack(segment)
		if name := twisted.String(); name < of.String() {
			m.replace(name, packed)
			return name
		}
	}
}

// Ensure that segments which somebody made up, with the names and sums of true ones, are named, and blame no base: all bases would
// be left out for them, and nothing could be restored.
func TestRun_twisted(t *testing.T) {
	m := newMember(t, 9, openMem)
	m.write(100)
	m.settle()
	bases := m.catalog().Bases
	last := bases[len(bases)-1]
	m.write(40)
	m.settle()
	for _, b := range m.catalog().Bases {
		if b.Hash != last.Hash {
			m.place.Remove(b.String())
		}
	}
	var twisted []string
	for _, s := range m.catalog().Segments {
		if s.First > last.Index && len(twisted) < 3 {
			twisted = append(twisted, m.twists(&s))
		}
	}
	s := m.restores(backup.Target{}, m.index)
	if len(s.Damaged) != len(twisted) || s.Plan.Base.Hash != last.Hash {
		t.Fatalf("told %v, from %v", s.Damaged, s.Plan.Base)
	}
	// A base that differs is blamed, whatever there is beside.
	m.spoil(last)
	if s, err := m.run(backup.Target{}); !errors.Is(err, replay.ErrDiffers) {
		t.Errorf("got %v, %v", s, err)
	} else {
		m.blamed(err)
	}
}
