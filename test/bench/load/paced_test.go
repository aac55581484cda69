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
		if first { // one worker: no other goroutine is here
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

// An operation that is begun steadily does not wait for those before it, and all have ended when Steadily returns.
func TestSteadily(t *testing.T) {
	const all = 5
	arrived, ended := make(chan struct{}, all), 0
	var mu sync.Mutex
	Steadily(t.Context(), time.Millisecond, func(i int) func() {
		if i == all {
			return nil
		}
		return func() {
			arrived <- struct{}{}
			for len(arrived) < all { // the last one lets all go on
				select {
				case <-t.Context().Done():
					return
				case <-time.After(time.Millisecond):
				}
			}
			mu.Lock()
			ended++
			mu.Unlock()
		}
	})
	if ended != all {
		t.Errorf("%d of %d have ended", ended, all)
	}
}
