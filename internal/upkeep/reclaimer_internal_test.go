package upkeep

import "testing"

func TestReclaimer_due(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		name                  string
		dropped, left, onDisk int64
		low, want             bool
	}{
		{name: "nothing was dropped", left: 2 * mib, onDisk: 900 * mib},
		{name: "much was, and lies on disk", dropped: 200 * mib, left: 2 * mib, onDisk: 202 * mib, want: true},
		{name: "the engine has removed it by itself", dropped: 200 * mib, left: 2 * mib, onDisk: 10 * mib},
		{name: "little beside what is left", dropped: 200 * mib, left: 900 * mib, onDisk: 1100 * mib},
		{name: "half of what is left", dropped: 450 * mib, left: 900 * mib, onDisk: 1351 * mib, want: true},
		{name: "little", dropped: 15 * mib, left: 2 * mib, onDisk: 40 * mib},
		{name: "little, on a full disk", dropped: 15 * mib, left: 900 * mib, onDisk: 915 * mib, low: true, want: true},
		{name: "nothing, on a full disk", left: 2 * mib, onDisk: 40 * mib, low: true},
	} {
		if got := due(tc.dropped, tc.left, tc.low, func() int64 { return tc.onDisk }); got != tc.want {
			t.Errorf("%s: due is %v, want %v", tc.name, got, tc.want)
		}
	}
}
