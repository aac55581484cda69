package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that revisions and times are told apart, that a time without a zone is UTC, and that what is neither is refused with
// what to write.
func TestRevisionOrTime(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"4711": "4711 ", "2026-11-30T11:03:10Z": "0 2026-11-30T11:03:10Z", "2026-11-30 11:03:10": "0 2026-11-30T11:03:10Z",
		"2026-11-30T11:03:10+01:00": "0 2026-11-30T10:03:10Z", "2026-11-30 11:03": "0 2026-11-30T11:03:00Z",
		"15m": "0 2026-11-30T11:45:00Z", "1h30m": "0 2026-11-30T10:30:00Z",
		"": "no time", "-4": "no revision", "0": "no revision", "99999999999999999999": "no revision", "x": "no time",
		"2026-11-30": "no time", "2026-11-30T12:00:01Z": "future", "1969-01-01 00:00:00": "1970", "-5m": "no time",
	} {
		revision, at, err := command.RevisionOrTime(text, now)
		got := "0 "
		if revision != 0 {
			got = "4711 "
		}
		if !at.IsZero() {
			got += at.UTC().Format(time.RFC3339)
		}
		if strings.Contains(want, " ") && !strings.HasPrefix(want, "no ") {
			if err != nil || got != want {
				t.Errorf("%q: %s, %v", text, got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
