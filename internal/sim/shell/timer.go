package shell

import "time"

// timer makes the loop step when an offer that waits for its stamp is due.
type timer struct {
	*Life
	armed bool
	at    time.Time
	turn  int // number of the last setting: earlier ones do not fire
	fire  func()
}

// reset arms the timer for a time of the machine's clock, or stops it if no offer waits.
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
