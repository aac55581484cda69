package sim

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/sim/tally"
)

// Ensure that worlds with a backup have what they are for: policies that come and go, members that are appointed one after the
// other, reports, bases, segments and gaps, states that are restored, and what retention removes.
func TestWorld_ships(t *testing.T) {
	var policies, turns, reports, tries, proofs uint64
	var placed tally.Backups
	for seed := uint64(3); seed <= 6; seed++ {
		w, err := newWorld(Options{Seed: seed, Members: 3, Duration: 20 * time.Second, Nemesis: "backup,crash,partition,transfer"})
		if err != nil {
			t.Fatal(err)
		}
		w.guarded(w.faultyPhase)
		w.guarded(w.calmPhase)
		w.run.routines.End()
		if w.run.suite.Failed() {
			t.Errorf("seed %d: %v", seed, w.run.suite.Violations)
		}
		b, c := w.run.suite.Backups(), &w.run.counts.Backups
		policies, turns, reports = policies+b.Policies, turns+b.Turns, reports+b.Reports
		tries, proofs = tries+b.Tries, proofs+b.Proofs
		placed.Segments, placed.Bases = placed.Segments+c.Segments, placed.Bases+c.Bases
		placed.RemovedLog, placed.RemovedBases = placed.RemovedLog+c.RemovedLog, placed.RemovedBases+c.RemovedBases
		placed.RemovedFiles += c.RemovedFiles
		placed.Gaps, placed.Restored = placed.Gaps+c.Gaps, placed.Restored+c.Restored
	}
	if policies < 3 || turns < 4 || reports < 30 || placed.Segments < 40 || placed.Bases < 3 || placed.Gaps < 1 ||
		placed.RemovedLog < 5 || placed.RemovedBases < 1 ||
		placed.Restored < 6 || tries < 2 || proofs < 1 {
		t.Errorf("%d policies, %d turns, %d reports, %d tries to prove it and %d ends, %+v", policies, turns, reports, tries,
			proofs, placed)
	}
}
