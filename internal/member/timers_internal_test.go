package member

import (
	"context"
	"testing"
	"time"
)

// Ensure that what is looked at now and then is looked at again and again, and no more after the end.
func TestLookEvery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	if err := lookEvery(ctx, time.Microsecond, func() {
		if looks++; looks == 3 {
			cancel()
		}
	}); err != nil || looks < 3 {
		t.Errorf("looked %d times, %v", looks, err)
	}
}
