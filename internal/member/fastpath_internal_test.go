package member

import (
	"testing"
	"time"
)

func TestFastPath_pays(t *testing.T) {
	for _, row := range []struct {
		fast     FastPath
		distance time.Duration
		want     bool
	}{
		{FastPathAuto, 0, false},
		{FastPathAuto, 300 * time.Microsecond, false},
		{FastPathAuto, farAway, true},
		{"", 50 * time.Millisecond, true},
		{FastPathAlways, 0, true},
		{FastPathNever, time.Second, false},
	} {
		if got := row.fast.pays(row.distance); got != row.want {
			t.Errorf("%q at %v: got %t", row.fast, row.distance, got)
		}
	}
}
