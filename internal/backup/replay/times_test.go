package replay_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/backup"
)

// Ensure that objects which somebody copied with other times let no restore of a time give the state of another one, unless by
// less than clocks differ; and that names of nothing refuse none.
func TestRun_otherTimes(t *testing.T) {
	const hour = 3600_000
	m := newMember(t, 9, openMem)
	for range 6 {
		m.write(15)
		m.settle()
		m.now += 2 * hour
	}
	c := m.catalog()
	at := c.Segments[len(c.Segments)/3].Head()
	f := &forked{before: m, after: m}
	target := backup.Target{Time: at.Time + 1}
	wants := func(what string, refused bool) {
		t.Helper()
		got, err := f.sole(t, target, nil)
		if times, is := errors.AsType[*backup.TimesError](err); is != refused || !refused && (err != nil || got != m.was[m.last(target)]) {
			t.Errorf("%s: %v, %v", what, times, err)
		}
	}
	wants("nothing is made up", false)
	late := c.Segments[0].SegmentName
	late.Time, late.Hash = at.Time+9*hour, backup.HashOf([]byte("x"))
	m.replace(late.String(), []byte("garbage"))
	wants("a name of nothing", false)

	base := c.Bases[len(c.Bases)-1]
	content, _ := m.place.Bytes(base.String())
	made, err := backup.OpenManifest(&base.BaseName, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	made.Time = at.Time
	name, copied := made.Encode()
	m.replace(name.String(), copied)
	wants("a base", true)
	m.place.Remove(name.String())
	wants("no base", false)

	for _, s := range c.Segments {
		if s.Time <= target.Time {
			continue
		}
		content, _ := m.place.Bytes(s.String())
		segment, err := backup.Unpack(&s.SegmentName, bytes.Clone(content))
		if err != nil {
			t.Fatal(err)
		}
		for i := range segment.Items {
			segment.Items[i].Time = min(segment.Items[i].Time, at.Time)
		}
		name, packed := backup.NewPacker().Pack(segment)
		m.replace(name.String(), packed)
	}
	wants("segments", true)
}
