package rpc

import "testing"

// Ensure that a write is waited for until it is applied, or was waited for in vain once.
func TestOwnWrites_missing(t *testing.T) {
	var o ownWrites
	if got := o.missing(5); got != 0 {
		t.Errorf("nothing was answered: %d", got)
	}
	o.note(7)
	o.note(6)
	if got := o.missing(6); got != 7 {
		t.Errorf("applied up to 6: %d, want 7", got)
	}
	if got := o.missing(7); got != 0 {
		t.Errorf("applied up to 7: %d", got)
	}
	raise(&o.givenUp, 7)
	if got := o.missing(6); got != 0 {
		t.Errorf("after 7 was given up: %d", got)
	}
	o.note(8)
	if got := o.missing(6); got != 8 {
		t.Errorf("after another write: %d, want 8", got)
	}
}
