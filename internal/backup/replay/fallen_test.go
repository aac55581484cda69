package replay_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

const minute = 60_000

// timed is a member that has written for some minutes, with one base before that.
func timed(t *testing.T, seed int64) *member {
	m := newMember(t, seed, openMem)
	for range 3 {
		m.write(20)
		m.settle()
	}
	return m
}

// shifted puts a segment with the entries and sums of another one, whose times differ by so much, before that in the order of a
// plan.
func (m *member) shifted(of *backup.Stored, by int64) {
	m.t.Helper()
	content, _ := m.place.Bytes(of.String())
	segment, err := backup.Unpack(&of.SegmentName, content)
	if err != nil {
		m.t.Fatal(err)
	}
	for i := range segment.Items {
		segment.Items[i].Time += by
	}
	segment.Predecessor = backup.Hash{9}
	name, packed := backup.NewPacker().Pack(segment)
	m.replace(name.String(), packed)
}

// manifest reads that of a base.
func (m *member) manifest(b *backup.Base) *backup.Manifest {
	m.t.Helper()
	content, _ := m.place.Bytes(b.String())
	made, err := backup.OpenManifest(&b.BaseName, content, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return made
}

// Ensure that a time names no state where objects at the place disagree about it, that the refusal names entries which can be
// had, and that another time names its state as before.
func TestRun_timesFall(t *testing.T) {
	for what, forge := range map[string]func(m *member, at consensus.Index){
		"a copy of the last base": func(m *member, at consensus.Index) {
			bases := m.catalog().Bases
			made := m.manifest(&bases[len(bases)-1])
			made.Time = m.at[at].Time - 1
			name, content := made.Encode()
			m.replace(name.String(), content)
		},
		"twins with earlier times": func(m *member, at consensus.Index) {
			for _, s := range m.catalog().Segments {
				if s.First > at {
					m.shifted(&s, -3*minute)
				}
			}
		},
		"twins with earlier times, without other bases": func(m *member, at consensus.Index) {
			c := m.catalog()
			for _, b := range c.Bases[1:] {
				m.place.Remove(b.String())
			}
			for _, s := range c.Segments {
				if s.First > at {
					m.shifted(&s, -3*minute)
				}
			}
		},
		"a wider segment with later times": func(m *member, at consensus.Index) {
			c := m.catalog()
			for i := range c.Segments {
				if s := &c.Segments[i]; s.First < at && at < c.Segments[i+1].End.Index {
					m.shifted(s, 1000*minute)
				}
			}
		},
	} {
		m := timed(t, 9)
		at := consensus.Index(25) // of the second burst
		target := backup.Target{Time: m.at[at].Time}
		want := m.last(target)
		m.alone("control", target, want, true, 0)
		forge(m, at)
		_, err := m.sole(target, true)
		fall, is := errors.AsType[*backup.TimesError](err)
		if !is || !strings.Contains(err.Error(), "--at entry:") {
			t.Errorf("%s: %v", what, err)
			continue
		}
		m.alone(what+", by the entry", backup.Target{Index: want}, want, true, 0)
		for _, entry := range []consensus.Index{fall.At.Index, fall.Before.Index} {
			if entry > 0 {
				m.alone(what+", as told", backup.Target{Index: entry}, entry, true, 0)
			}
		}
		m.alone(what+", the latest state", backup.Target{}, m.index, true, 0)
	}
}

// Ensure that names alone, of which no object is there or is what they say, refuse no time, and are named.
func TestRun_timesOfNothing(t *testing.T) {
	m := timed(t, 9)
	at := consensus.Index(25)
	c := m.catalog()
	base, segment := c.Bases[0].BaseName, c.Segments[1].SegmentName
	base.Time, base.Hash = m.at[60].Time, backup.HashOf([]byte("a base"))
	segment.Time, segment.Hash = m.at[60].Time, backup.HashOf([]byte("a segment"))
	m.replace(base.String(), []byte("no base"))
	m.replace(segment.String(), []byte("no segment"))
	target := backup.Target{Time: m.at[at].Time}
	m.alone("garbage", target, m.last(target), true, 2)
	for i := range backup.MaxStrays {
		base.Hash[0], base.Hash[1] = byte(i), byte(i>>8)
		m.replace(base.String(), []byte("no base"))
	}
	m.alone("much garbage", target, m.last(target), true, 2+backup.MaxStrays)
}

// Ensure that a clock that was ahead refuses only the times of which nobody can say whose they are.
func TestRun_clockAhead(t *testing.T) {
	const hours = 5 * 60 * minute
	m := timed(t, 9)
	c := m.catalog()
	for i := range c.Segments {
		if s := &c.Segments[i]; s.First <= 40 {
			m.shifted(s, hours)
			m.place.Remove(s.String())
		}
	}
	for i := range c.Bases {
		if b := &c.Bases[i]; b.Index <= 40 {
			made := m.manifest(b)
			made.Time += hours
			name, content := made.Encode()
			m.replace(name.String(), content)
			m.place.Remove(b.String())
		}
	}
	for _, row := range []struct {
		time int64
		want consensus.Index // 0: it is refused
	}{{m.at[60].Time + 2*minute, 0}, {m.at[15].Time + hours, 0}, {m.at[40].Time + hours + minute, m.index}} {
		target := backup.Target{Time: row.time}
		if row.want > 0 {
			m.alone("after all", target, row.want, true, 0)
		} else if _, err := m.sole(target, true); !isTimes(err) {
			t.Errorf("%v: %v", target, err)
		}
	}
}

func isTimes(err error) bool {
	_, is := errors.AsType[*backup.TimesError](err)
	return is
}

// Ensure that a revision names no state where a twin of a segment gives entries behind the one before it later revisions: an earlier
// state would be taken for it.
func TestRun_revisionsFall(t *testing.T) {
	m := timed(t, 9)
	at := consensus.Index(25)
	target := backup.Target{Revision: m.at[at].Revision}
	want := m.last(target)
	m.alone("control", target, want, true, 0)
	for _, s := range m.catalog().Segments {
		if s.First <= want && want < s.End.Index+1 && s.First < want {
			content, _ := m.place.Bytes(s.String())
			segment, err := backup.Unpack(&s.SegmentName, content)
			if err != nil {
				t.Fatal(err)
			}
			for i := range segment.Items {
				segment.Items[i].Revision += 100
				segment.Items[i].Time--
			}
			name, packed := backup.NewPacker().Pack(segment)
			m.replace(name.String(), packed)
		}
	}
	if _, err := m.sole(target, true); !isTimes(err) {
		t.Error(err)
	}
	m.alone("by the entry", backup.Target{Index: want}, want, false, 1)
}

// Ensure that a member which ships again what another one had shipped minutes before, as at a hand-over while the place hung, has
// restores refuse the times between the two alone, and that the entries which are named can be had.
func TestRun_handOver(t *testing.T) {
	const apart = 150_000
	m := timed(t, 9)
	c := m.catalog()
	var last *backup.Stored // of the second burst: the third one is later
	for i := range c.Segments {
		if s := &c.Segments[i]; s.First <= 40 && 40 <= s.End.Index {
			last = s
		}
	}
	m.shifted(last, apart)
	begin, end := m.at[last.First].Time, m.at[40].Time
	for _, at := range []int64{begin - 1, end + apart - minute, end + apart, m.at[45].Time} {
		target := backup.Target{Time: at}
		m.alone("beside them", target, m.last(target), true, 0)
	}
	for _, at := range []int64{end, end + apart - minute - 1} {
		_, err := m.sole(backup.Target{Time: at}, true)
		fall, is := errors.AsType[*backup.TimesError](err)
		if !is {
			t.Errorf("%d ms behind: %v", at-end, err)
			continue
		}
		for _, entry := range []consensus.Index{fall.At.Index, fall.Before.Index} {
			if entry > 0 {
				m.alone("as told", backup.Target{Index: entry}, entry, true, 0)
			}
		}
	}
}
