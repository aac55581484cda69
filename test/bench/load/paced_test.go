package load

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Operations that wait for one that stalls are late from when they were due, and none is left out.
func TestPaced(t *testing.T) {
	var mu sync.Mutex
	late, failed, done := 0, 0, 0
	first := true
	stalled := errors.New("stalled")
	operate := func(context.Context, *Worker) error {
		if first { // one worker: nobody else is here
			first = false
			<-time.After(50 * time.Millisecond)
			return stalled
		}
		return nil
	}
	Paced(t.Context(), []*Worker{{}}, operate, 1000, 100*time.Millisecond, func(due, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		done++
		if err != nil {
			failed++
		}
		if due < 40*time.Millisecond && took >= 50*time.Millisecond-due {
			late++
		}
	})
	if done != 100 || failed != 1 || late != 40 {
		t.Errorf("%d done, %d failed, %d late: want 100, 1, 40", done, failed, late)
	}
}
