package shell

import "time"

// timer makes the loop step when an offer is due that waits for its stamp.
type timer struct {
	*Life
	armed bool
	at    time.Time
	turn  int // counts how often it was set: what was set before does not fire
	fire  func()
}

// reset arms the timer for a time by the machine's clock, or stops it if nothing waits.
func (t *timer) reset(due time.Time, waits bool) {
	switch {
	case !waits:
		t.armed = false
		t.turn++
		return
	case t.armed && t.at.Equal(due):
		return
	}
	t.turn++
	t.armed, t.at = true, due
	turn := t.turn
	t.After(max(t.Until(due), time.Microsecond), func() {
		if t.turn == turn {
			t.armed = false
			t.fire()
		}
	})
}
