package observed_test

import (
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/observed"
)

func TestEnds(t *testing.T) {
	const now, day = consoletest.Now, int64(24 * 3600_000)
	for _, row := range []struct {
		from, until int64
		text, look  string
	}{
		{now - 10*day, now - 3600_000, "ended 1 h ago", "bad"},
		{now - 99*day, now + day, "in 24 h", "bad"},
		{now - 90*day, now + 10*day, "in 10 days", "warn"},
		{now - 10*day, now + 90*day, "in 90 days", ""},
		{0, now + 60_000, "in 1 min", ""},
	} {
		text, look := observed.Ends(&quoratepb.ObservedCertificate{FromMs: row.from, UntilMs: row.until}, now)
		if text != row.text || look != row.look {
			t.Errorf("got %q, %q, want %q, %q", text, look, row.text, row.look)
		}
	}
}
