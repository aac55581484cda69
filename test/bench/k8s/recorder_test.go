package k8s

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// A request that is due in the window counts, from when it was due, whenever it ends; errors count always.
func TestRecorder(t *testing.T) {
	from := time.Now()
	r := newRecorder(from, from.Add(time.Second))
	at := func(ms int) time.Time { return from.Add(time.Duration(ms) * time.Millisecond) }
	r.took(Lease, at(-1), time.Minute)
	r.took(Lease, at(0), 5*time.Millisecond)
	r.took(Pod, at(999), 3*time.Second) // ends long after the window
	r.took(Event, at(1000), time.Minute)
	r.took(List, at(10), time.Minute)
	r.told(at(-1), at(5))
	r.told(at(1), at(5))
	r.told(time.Time{}, at(5)) // of no stamp
	r.done(Pod, at(5000), fmt.Errorf("put: %w", context.DeadlineExceeded))
	r.note("watch", errors.New("cancelled"))
	if r.all.Count() != 2 || r.all.Longest() != 3*time.Second || r.times[Lease].Longest() != 5*time.Millisecond {
		t.Errorf("mutations: got %d up to %v", r.all.Count(), r.all.Longest())
	}
	if r.times[Event].Count() != 0 || r.times[List].Count() != 1 || len(r.ends) != 4 {
		t.Errorf("got %d events, %d lists, %d ends", r.times[Event].Count(), r.times[List].Count(), len(r.ends))
	}
	if r.lag.Count() != 1 || r.lag.Longest() != 4*time.Millisecond {
		t.Errorf("lag: got %d up to %v", r.lag.Count(), r.lag.Longest())
	}
	if r.errors != 1 || r.failed["pod change: took too long"] != 1 || r.failed["watch: cancelled"] != 1 {
		t.Errorf("errors: got %d, %v", r.errors, r.failed)
	}
	var none *recorder // before the first step
	none.fail("compaction", errors.New("compacted"))
	none.told(from, from)
}
