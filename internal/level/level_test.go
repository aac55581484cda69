package level_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/level"
)

// Ensure that the table has a row for each level, in order, and nothing beyond.
func TestLevel_Enables(t *testing.T) {
	for l := level.First; l <= level.Own; l++ {
		if l.Release() == "" || strings.Contains(l.Enables(), "does not know") {
			t.Errorf("level %d: %q since %q", l, l.Enables(), l.Release())
		}
	}
	for _, l := range []level.Level{0, level.Own + 1, 255} {
		if l.Release() != "" {
			t.Errorf("level %d is known since %q", l, l.Release())
		}
	}
}

// Ensure that build and level are read as they were written, and that any other text stays a version.
func TestRead(t *testing.T) {
	for _, row := range []struct {
		version, build string
		l              level.Level
	}{{"3.7.1", "0.1.0-dev", 2}, {"", "", 255}, {"3.7.1 quorate/x level/3", "a b", 9}} {
		version, build, l := level.Read(level.Stamp(row.version, row.build, row.l))
		if version != row.version || build != row.build || l != row.l {
			t.Errorf("%+v is read as %q, %q, %d", row, version, build, l)
		}
	}
	for _, text := range []string{
		"", "3.7.1", "3.7.1 quorate/0.1.0", "3.7.1 level/2", "3.7.1 quorate/b level/1", "3.7.1 quorate/b level/02",
		"3.7.1 quorate/b level/256", "3.7.1 quorate/b level/2 ", "3.7.1 level/2 quorate/b",
	} {
		if version, build, l := level.Read(text); version != text || build != "" || l != 0 {
			t.Errorf("%q is read as %q, %q, %d", text, version, build, l)
		}
	}
	if text := level.Stamp("3.7.1", "b", level.First); text != "3.7.1" {
		t.Errorf("the first level is told: %q", text)
	}
}

// What any member may have published is read as it is written again, or stays a version.
func FuzzRead(f *testing.F) {
	f.Add("3.7.1")
	f.Add(level.Stamp("3.7.1", "0.1.0", level.Own))
	f.Fuzz(func(t *testing.T, text string) {
		if version, build, l := level.Read(text); level.Stamp(version, build, l) != text {
			t.Errorf("%q is read as %q, %q, %d", text, version, build, l)
		}
	})
}

// Ensure that a refusal names who holds the level back, and does not grow with the cluster.
func TestHeldError(t *testing.T) {
	held := level.HeldError{Needs: level.Users, Active: level.First, By: []level.Holder{
		{Name: "m1", Build: "0.0.9", Level: 1, Started: true}, {Name: "m2"}, {Name: "m3", Started: true},
	}}
	for _, want := range []string{
		"level 2", "at 1", "m1 (build 0.0.9, level 1)", "m2 (never started)", "m3 (an earlier build, level 1)", "0.1.0",
	} {
		if !strings.Contains(held.Error(), want) {
			t.Errorf("%q is not in %q", want, held.Error())
		}
	}
	held.By = make([]level.Holder, 1000)
	if text := held.Error(); len(text) > 500 || !strings.Contains(text, "992 more") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
