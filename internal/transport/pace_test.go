package transport

import (
	"testing"
	"time"
)

func TestPace_after(t *testing.T) {
	now := time.Unix(1000, 0)
	p := pace{perSecond: 1000}
	for i, row := range []struct {
		name    string
		forward time.Duration
		bytes   int
		want    time.Duration
	}{
		{"the first bytes cost their time", 0, 500, 500 * time.Millisecond},
		{"what follows at once waits longer", 0, 500, time.Second},
		{"time that passes is paid off", 900 * time.Millisecond, 100, 200 * time.Millisecond},
		{"idle time is not saved up", time.Hour, 1000, time.Second},
	} {
		now = now.Add(row.forward)
		if got := p.after(now, row.bytes); got != row.want {
			t.Errorf("%d %s: got %s, want %s", i, row.name, got, row.want)
		}
	}
	if got := (&pace{}).after(now, 1<<30); got != 0 {
		t.Errorf("without a limit: got %s, want 0", got)
	}
}
