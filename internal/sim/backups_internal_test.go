package sim

import "testing"

// Ensure that worlds with a backup have what they are for: policies that come and go, members that are appointed one after the
// other, reports, and commands that come too late.
func TestWorld_ships(t *testing.T) {
	ran := 0
	for seed := uint64(0); ran < 2; seed++ {
		w, err := newWorld(Options{Seed: seed, Members: 3})
		if err != nil {
			t.Fatal(err)
		}
		if !w.run.plan.Ships || w.run.plan.Older || w.run.plan.Recovers {
			continue
		}
		ran++
		w.guarded(w.faultyPhase)
		w.guarded(w.calmPhase)
		w.run.routines.End()
		if w.run.suite.Failed() {
			t.Errorf("seed %d: %v", seed, w.run.suite.Violations)
		}
		if b := w.run.suite.Backups(); b.Policies < 2 || b.Turns < 2 || b.Reports < 10 {
			t.Errorf("seed %d: %+v", seed, *b)
		}
	}
}
