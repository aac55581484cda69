package member

import (
	"context"
	"sync"
	"time"
)

// timerPool recycles the timers of requests: each request needs one, and nearly none of them fires. The zero value is ready.
type timerPool struct{ pool sync.Pool }

func (p *timerPool) get(d time.Duration) *time.Timer {
	if t, ok := p.pool.Get().(*time.Timer); ok {
		t.Reset(d)
		return t
	}
	return time.NewTimer(d)
}

func (p *timerPool) put(t *time.Timer) {
	t.Stop()
	p.pool.Put(t)
}

// lookEvery calls look after each interval, one call at a time, until ctx ends.
func lookEvery(ctx context.Context, interval time.Duration, look func()) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			look()
		case <-ctx.Done():
			return nil
		}
	}
}
