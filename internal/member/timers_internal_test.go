package member

import (
	"context"
	"testing"
	"time"
)

// Ensure that look is called again and again, and not any more after the end of ctx.
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
