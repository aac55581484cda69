package offers

import (
	"testing"
	"time"
)

// Ensure that offers are stamped when members meet them in different orders, and not when they conflict; that they pause when
// few are agreed on; and that all of this is looked at again.
func TestPolicy_Look(t *testing.T) {
	var p Policy
	var counted Outcomes
	now := time.Unix(1000, 0)
	second := func(o Outcomes) Mode {
		now = now.Add(lookInterval)
		counted = Outcomes{counted.Tried + o.Tried, counted.Agreed + o.Agreed, counted.Disagreed + o.Disagreed}
		return p.Look(now, counted)
	}
	p.Look(now, Outcomes{})
	for _, step := range []struct {
		what    string
		seconds int
		each    Outcomes
		want    Mode
	}{
		{"all is well", 3, Outcomes{100, 99, 1}, AtOnce},
		{"a handful tells nothing", 3, Outcomes{fewestOffers - 1, 0, 10}, AtOnce},
		{"stamps do not help against conflicts", 3, Outcomes{100, 50, 2}, AtOnce},
		{"different orders are", 1, Outcomes{100, 50, 40}, Stamped},
		{"what was offered before is still on its way", 1, Outcomes{100, 10, 80}, Stamped},
		{"stamps help", 10, Outcomes{100, 60, 30}, Stamped},
		{"and no more", 1, Outcomes{100, 10, 80}, Paused},
		{"a pause", int(pausedFor/lookInterval) - 1, Outcomes{}, Paused},
		{"is over", 1, Outcomes{}, Stamped},
		{"stamps help again", int(stampedFor/lookInterval) - 1, Outcomes{100, 60, 30}, Stamped},
		{"are they still needed?", 1, Outcomes{100, 60, 30}, AtOnce},
		{"what was stamped is still on its way", 1, Outcomes{100, 60, 30}, AtOnce},
		{"they are", 1, Outcomes{100, 60, 30}, Stamped},
		{"until they are not", int(stampedFor / lookInterval), Outcomes{100, 99, 0}, AtOnce},
		{"everything meets one key", 2, Outcomes{100, 5, 0}, Paused},
		{"for a while", int(pausedFor / lookInterval), Outcomes{}, AtOnce},
	} {
		var got Mode
		for range step.seconds {
			got = second(step.each)
		}
		if got != step.want {
			t.Fatalf("%s: mode %d, want %d", step.what, got, step.want)
		}
	}
}

func TestStampAhead(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		leader time.Duration
		others []time.Duration
		super  int
		want   time.Duration
	}{
		{100 * ms, []time.Duration{20 * ms, 60 * ms, 300 * ms}, 4, 54 * ms}, // the leader is the farthest that is needed
		{40 * ms, []time.Duration{200 * ms, 300 * ms, 60 * ms}, 4, 108 * ms},
		{10 * ms, nil, 2, 6 * ms},
		{10 * ms, []time.Duration{20 * ms}, 4, 0}, // it is not known which other voters are needed
	} {
		if got := Ahead(tc.leader, tc.others, tc.super-2); got != tc.want {
			t.Errorf("leader %v, others %v, %d needed: %v, want %v", tc.leader, tc.others, tc.super, got, tc.want)
		}
	}
}

// A native client counts what is under way as disagreed. While all its offers are won it never stamps, however many are under
// way when it looks.
func TestPolicy_Look_underWay(t *testing.T) {
	var p Policy
	now := time.Unix(1000, 0)
	for second := range uint64(60) {
		offered := 100 * second
		underWay := min(offered, (second*7)%11)
		if got := p.Look(now, Outcomes{offered, offered - underWay, underWay}); got != AtOnce {
			t.Fatalf("second %d, %d under way: mode %d", second, underWay, got)
		}
		now = now.Add(lookInterval)
	}
}
