package observe

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that a member says the worst that a build may have done, and nothing once it has not judged itself for long.
func TestVerdictOf(t *testing.T) {
	now := time.Unix(1000, 0)
	of := func(code doctor.Code, severity doctor.Severity) doctor.Finding {
		return doctor.Finding{Code: code, Severity: severity, Sentence: "it is so"}
	}
	slow, two, held := of(doctor.DiskSlow, doctor.SlowerThanIs), of(doctor.TwoVoters, doctor.NextFailure), of(doctor.LevelHeld, doctor.Advice)
	refused, stalls := of(doctor.ClientsRefused, doctor.SlowerThanIs), of(doctor.StoreStalls, doctor.Advice)
	for _, c := range []struct {
		findings []doctor.Finding
		at       time.Time
		judged   bool
		worst    string
	}{
		{nil, time.Time{}, false, ""},
		{nil, now, true, ""},
		{[]doctor.Finding{slow}, now, true, "DISK_SLOW: it is so"},
		{[]doctor.Finding{two, slow}, now, true, "DISK_SLOW: it is so"},
		{[]doctor.Finding{two, refused, held, stalls}, now, true, ""},
		{[]doctor.Finding{slow}, now.Add(-verdictLasts), true, "DISK_SLOW: it is so"},
		{[]doctor.Finding{slow}, now.Add(-verdictLasts - 1), false, ""},
	} {
		if judged, worst := verdictOf(c.findings, c.at, now); judged != c.judged || worst != c.worst {
			t.Errorf("%v, judged %v ago: got %v, %q, want %v, %q", c.findings, now.Sub(c.at), judged, worst, c.judged, c.worst)
		}
	}
}

// Ensure that a window leaves out what a member applies as it starts, as soon as it can, and is a minute afterwards.
func TestWindowBegins(t *testing.T) {
	begun := time.Unix(1000, 0)
	settled := begun.Add(10 * time.Second)
	for _, row := range []struct{ now, want time.Duration }{
		{3 * time.Second, 0}, {9 * time.Second, 0}, {10 * time.Second, 0}, {14 * time.Second, 0}, {15 * time.Second, 10 * time.Second},
		{60 * time.Second, 10 * time.Second}, {69 * time.Second, 10 * time.Second}, {75 * time.Second, 15 * time.Second},
		{200 * time.Second, 140 * time.Second},
	} {
		var all []tallies
		for at := time.Duration(0); at <= row.now; at += 5 * time.Second {
			all = append(all, tallies{at: begun.Add(at)})
		}
		if got := windowBegins(all, settled, begun.Add(row.now)); !got.at.Equal(begun.Add(row.want)) {
			t.Errorf("after %v: it begins after %v, want %v", row.now, got.at.Sub(begun), row.want)
		}
	}
}
