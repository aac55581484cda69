package workload

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/dice"
)

// Draw draws a mix.
func Draw(rng *rand.Rand) Mix {
	return Mix{
		Clients:  dice.Pick(rng, 2, 4, 8),
		Readers:  dice.Pick(rng, 0, 0, 1, 2),
		Tenants:  dice.Pick(rng, 0, 1, 3),
		Watchers: dice.Pick(rng, 0, 4, 8),
		Keys:     dice.Pick(rng, 1, 3, 8),
		Think:    dice.Pick(rng, 20*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond),
		Patience: dice.Pick(rng, time.Second, 5*time.Second),
		Put:      30, Get: dice.Pick(rng, 5, 30), Local: 5, CAS: dice.Pick(rng, 0, 20), Delete: 4, Txn: dice.Pick(rng, 0, 10),
		Range:        dice.Pick(rng, 0, 5),
		CompactEvery: dice.Pick(rng, 0, 2*time.Second, 10*time.Second),
		LeaseTTL:     dice.Pick(rng, int64(2), 5),
	}
}
