package level_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
)

// Ensure that the table has a row for each level, in order, and nothing beyond.
func TestLevel_Enables(t *testing.T) {
	for l := level.First; l <= level.Own; l++ {
		if !strings.HasPrefix(l.Builds(), "build 1.") || strings.Contains(l.Enables(), "does not know") {
			t.Errorf("level %d: %q, of %q", l, l.Enables(), l.Builds())
		}
	}
	for _, l := range []level.Level{0, level.Own + 1, 255} {
		if l.Builds() != "a build that knows it" || !strings.Contains(l.Enables(), "does not know") {
			t.Errorf("level %d: %q, of %q", l, l.Enables(), l.Builds())
		}
	}
}

// Ensure that a refusal names the members that hold the level back, says what to do, and does not grow with the cluster.
func TestHeldError(t *testing.T) {
	for needs, release := range map[level.Level]string{level.First: "build 1.0.0 or later", level.Own + 1: "a build that knows it"} {
		held := level.HeldError{Needs: needs, Active: level.First, By: []level.Holder{
			{Name: "m1", Build: "1.0.3", Level: 1, Started: true}, {Name: "m2"},
		}}
		for _, want := range []string{"at 1", "m1 (build 1.0.3, level 1)", "m2 (never started)", "with " + release, "quorate member list"} {
			if !strings.Contains(held.Error(), want) {
				t.Errorf("%q is not in %q", want, held.Error())
			}
		}
		held.By = make([]level.Holder, 1000)
		if text := held.Error(); len(text) > 500 || !strings.Contains(text, "992 more") {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}

// Ensure that the error for a build which knows too little says what to do.
func TestTooLowError(t *testing.T) {
	low := level.TooLowError{Own: 1, Active: 2}
	for _, want := range []string{"at feature level 2", "knows 1 at most", "start the build that ran here before, or a later one"} {
		if !strings.Contains(low.Error(), want) {
			t.Errorf("%q is not in %q", want, low.Error())
		}
	}
}

// Ensure that each reason to wait says what to do, and that the one which passes by itself tells nobody to end the way back.
func TestRise_Waits(t *testing.T) {
	for kind, want := range map[level.PolicyKind]string{level.PolicyHold: "quorate upgrade finalize",
		level.PolicySoak: "quorate upgrade finalize", level.PolicyUnset: "try again"} {
		rise := level.Rise{Policy: level.Policy{Kind: kind, Seconds: 60}}
		held := level.HeldError{Needs: level.First + 1, Active: level.First, Why: rise.Waits(level.First + 1)}
		if got := held.Error(); !strings.Contains(got, want) || kind == level.PolicyUnset && strings.Contains(got, "finalize") {
			t.Errorf("policy %d: %s", kind, got)
		}
	}
}
