package offers

import (
	"testing"
	"time"
)

func TestSetting_Pays(t *testing.T) {
	for _, row := range []struct {
		setting  Setting
		distance time.Duration
		want     bool
	}{
		{Auto, 0, false},
		{Auto, 300 * time.Microsecond, false},
		{Auto, farAway, true},
		{"", 50 * time.Millisecond, true},
		{Always, 0, true},
		{Never, time.Second, false},
	} {
		if got := row.setting.Pays(row.distance); got != row.want {
			t.Errorf("%q at %v: got %t", row.setting, row.distance, got)
		}
	}
}
