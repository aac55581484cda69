package monotime_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/quorate/quorate/internal/base/monotime"
)

// setClock returns a time as the machine would show it after its clock was set by some seconds: its monotonic reading is the same.
func setClock(t time.Time, seconds int64) time.Time {
	parts := (*struct {
		wall uint64 // seconds from bit 30 on
		mono int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	parts.wall += uint64(seconds) << 30
	return t
}

// Ensure that the time that has passed since a time that is kept does not depend on the machine's clock.
func TestAtomic_Get(t *testing.T) {
	var a monotime.Atomic
	if at, set := a.Get(); set || !at.IsZero() {
		t.Errorf("unset: got %v, %t", at, set)
	}
	now := time.Now()
	for _, passed := range []time.Duration{-time.Hour, -1, 0, 1, time.Hour} {
		for _, seconds := range []int64{-36_000, 0, 36_000} {
			a.Set(now)
			at, set := a.Get()
			if got := setClock(now.Add(passed), seconds).Sub(at); got != passed || !set {
				t.Errorf("after %v, with the clock set by %d s: got %v, %t", passed, seconds, got, set)
			}
		}
	}
	plain := time.Unix(1_000_000, 5) // as a simulated clock shows it
	a.Set(plain)
	if at, set := a.Get(); !set || plain.Add(time.Second).Sub(at) != time.Second {
		t.Errorf("without a monotonic reading: got %v, %t", at, set)
	}
	a.SetIfUnset(now)
	if at, _ := a.Get(); at.Equal(now) {
		t.Error("what was set was set again")
	}
	a.Unset()
	a.SetIfUnset(now)
	if at, set := a.Get(); !set || at.Sub(now) != 0 {
		t.Errorf("set when unset: got %v, %t", at, set)
	}
}

func TestAtomic_Advance(t *testing.T) {
	var a monotime.Atomic
	now := time.Now()
	for i, row := range []struct {
		after   time.Duration
		seconds int64
		want    bool
	}{{0, 0, true}, {0, 0, false}, {999, 3600, false}, {1000, -3600, true}, {1500, 0, false}, {2001, 7200, true}} {
		if got := a.Advance(setClock(now.Add(row.after), row.seconds), 1000); got != row.want {
			t.Errorf("%d: got %t", i, got)
		}
	}
	var told atomic.Int64
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if a.Advance(now.Add(time.Hour), 1000) {
				told.Add(1)
			}
		})
	}
	running.Wait()
	if told.Load() != 1 {
		t.Errorf("%d of those at once were told", told.Load())
	}
}
