package sim

import (
	"testing"
	"time"
)

// Ensure that a run that does not come to its end is ended, and says so.
func TestWorld_runUntil_bound(t *testing.T) {
	w, err := newWorld(Options{Seed: 1, Members: 3, Nemesis: "none"})
	if err != nil {
		t.Fatal(err)
	}
	w.run.mostEvents = 1000
	var again func()
	again = func() { w.run.After(0, again) } // time never passes
	again()
	w.runUntil(time.Minute, nil)
	if v := w.run.suite.Violations; len(v) != 1 || v[0].Property != "harness" || w.run.counts.Events != 1000 {
		t.Errorf("got %v after %d events", v, w.run.counts.Events)
	}
}

// Ensure that no more offers are made once a law is broken: time stands still then, and no wait would end.
func TestWorld_offersAt_afterViolation(t *testing.T) {
	w, h := offering(t)
	w.run.suite.Report("some law", "is broken")
	done := make(chan bool, 1)
	go func() { done <- w.offersAt(h) }()
	select {
	case resumed := <-done:
		if resumed {
			t.Error("offers resume after a violation")
		}
	case <-time.After(10 * time.Second):
		panic("offersAt does not end, and takes memory without bound") // nothing else would stop it
	}
}

// offering returns a world with a member that gains by offers.
func offering(t *testing.T) (*World, *host) {
	t.Helper()
	for seed := range uint64(100) {
		w, err := newWorld(Options{Seed: seed, Members: 5, Nemesis: "none"})
		if err != nil {
			t.Fatal(err)
		}
		w.runUntil(10*time.Second, nil)
		for _, h := range w.cluster.up() {
			if h.serves() && h.proc.GainsByOffers() {
				return w, h
			}
		}
	}
	t.Fatal("no member gains by offering under 100 seeds")
	return nil, nil
}
