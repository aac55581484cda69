package level_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
)

// Ensure that versions and builds are read by their first two numbers, and that no other text is one. The rows must stay:
// members of all builds must end a downgrade at the same entry.
func TestParseRelease(t *testing.T) {
	for text, want := range map[string]level.Release{
		"0.1": {Minor: 1}, "3.6.0": {Major: 3, Minor: 6}, "0.1.0-dev+20261124.3f1448cbc1f2": {Minor: 1}, "0.1.0-dev": {Minor: 1},
		"4294967295.4294967295.0": {Major: 1<<32 - 1, Minor: 1<<32 - 1}, "1.2.3+a.b.c": {Major: 1, Minor: 2},
	} {
		if got, ok := level.ParseRelease(text); !ok || got != want {
			t.Errorf("%s: %v, %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1", "1.0.0-dev+" + strings.Repeat("a", 55),
		"v1.2", "a.b", "1.2.3.4", "1.-2", "-1.2", "1.2.x", "4294967296.0", "1..2", " 1.2", "1.2\n",
		strings.Repeat("1.", 1<<16), "b"} {
		if got, ok := level.ParseRelease(text); ok {
			t.Errorf("%.20q is %v", text, got)
		}
	}
}

// Ensure that a release knows the levels since it and before it, and that each level comes with a release, not with a patch of one:
// a release is named by two numbers.
func TestRelease_Knows(t *testing.T) {
	for text, want := range map[string]level.Level{"0.0": 0, "0.9": 0, "1.0": level.First, "1.1": level.Own, "7.0": level.Own} {
		release, _ := level.ParseRelease(text)
		if got, ok := release.Knows(); got != want || ok != (want > 0) {
			t.Errorf("%s knows %d, %t, want %d", text, got, ok, want)
		}
	}
	for l := level.First; l <= level.Own; l++ {
		if !strings.Contains(l.Builds(), ".0 or later") {
			t.Errorf("level %d came with %s", l, l.Builds())
		}
	}
}

// Ensure that releases are ordered by both numbers.
func TestRelease_Compare(t *testing.T) {
	order := []level.Release{{}, {Minor: 1}, {Minor: 10}, {Major: 1}, {Major: 1, Minor: 1}}
	for i, a := range order {
		for j, b := range order {
			if got := a.Compare(b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v and %v: %d", a, b, got)
			}
		}
	}
}
