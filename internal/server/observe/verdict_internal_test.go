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
