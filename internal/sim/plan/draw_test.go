package plan_test

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/sim/plan"
)

// Every fault of "all" must come up within a few seeds. Faults that end the cluster once came up in none.
func TestDraw_allHasRecoveries(t *testing.T) {
	seen := map[string]int{}
	const seeds = 200
	for seed := range uint64(seeds) {
		stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
		p, err := plan.Draw(&plan.Options{Nemesis: "all"}, plan.Streams{Plan: stream(1), Identity: stream(2), Named: stream(3)})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		recovers := false
		for _, n := range p.Disks {
			seen[n.Name]++
			switch n.Name {
			case "recover", "recover-apart", "recover-by-mistake":
				recovers = true
			}
		}
		if recovers != p.Recovers {
			t.Errorf("seed %d: members are recovered: %v, epochs are simulated: %v", seed, recovers, p.Recovers)
		}
	}
	for _, name := range []string{"recover", "recover-apart", "recover-by-mistake"} {
		if seen[name] == 0 || seen[name] > seeds/4 {
			t.Errorf("%s is in %d of %d seeds, want some and not most", name, seen[name], seeds)
		}
	}
	if seen["wipe"] != seeds {
		t.Errorf("wipe is in %d of %d seeds, want all", seen["wipe"], seeds)
	}
}
