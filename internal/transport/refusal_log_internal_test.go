package transport

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that a process that is refused in ever new words does not fill the log.
func TestRefusalLog_flood(t *testing.T) {
	var l refusalLog
	l.init()
	now := time.Unix(1000, 0)
	logged := 0
	for i := range 5000 {
		if _, ok := l.next(consensus.MemberID(i%3000), fmt.Sprint("words ", i), now); ok {
			logged++
		}
	}
	if logged != refusalsAtOnce {
		t.Errorf("%d lines of a flood are logged, want %d", logged, refusalsAtOnce)
	}
	now = now.Add(time.Minute)
	if suppressed, ok := l.next(1, "why", now); !ok || suppressed != 5000-refusalsAtOnce {
		t.Errorf("after it: logged %v, %d suppressed", ok, suppressed)
	}
	if _, ok := l.next(1, "why", now); ok {
		t.Error("the same is logged again")
	}
	if l.forget(1); len(l.told) > maxRefusalsTold {
		t.Errorf("%d are remembered", len(l.told))
	}
	if _, ok := l.next(1, "why", now); !ok {
		t.Error("a member that was taken in between is refused, and nothing says so")
	}
}
