package routines_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/sim/kernel"
	"github.com/quorate/quorate/internal/sim/routines"
)

// Ensure that routines go on in the events that they wait for, that a lock lets one at a time through, and that an ended
// routine stops waiting.
func TestSet_Go(t *testing.T) {
	var time kernel.Schedule
	var all routines.Set
	var lock routines.Lock
	var log []string
	say := func(name string) func(routines.Wait) {
		return func(wait routines.Wait) {
			turn := lock.Of(wait)
			turn.Lock()
			log = append(log, name+" begins")
			ok := wait(func(resume func()) { time.After(10, resume); time.After(20, resume) })
			turn.Unlock()
			if ok {
				log = append(log, name+" ends")
			}
		}
	}
	all.Go(say("a"))
	end := all.Go(say("b"))
	all.Go(say("c"))
	for do := time.Next(15); do != nil; do = time.Next(15) {
		do()
	}
	end()
	for do := time.Next(100); do != nil; do = time.Next(100) {
		do()
	}
	if want := []string{"a begins", "b begins", "a ends", "c begins", "c ends"}; !slices.Equal(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
	all.Go(say("d"))
	all.End()
	if last := log[len(log)-1]; last != "d begins" {
		t.Errorf("after the end: %s", last)
	}
}
