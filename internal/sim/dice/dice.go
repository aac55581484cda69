package dice

import (
	"math"
	"math/rand/v2"
	"time"
)

// Stream returns one of the independent random streams of a seed: a change in how one part draws leaves the others alone.
func Stream(seed, number uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, number)) }

// Exponential draws from an exponential distribution with a mean, bounded so that no draw stops the world.
func Exponential(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * min(-math.Log(1-rng.Float64()), 10))
}

// Between draws evenly from [lo, hi].
func Between(rng *rand.Rand, lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(rng.Int64N(int64(hi-lo)+1))
}

// Pick draws one of several values.
func Pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// Chance is true in share of all draws.
func Chance(rng *rand.Rand, share float64) bool { return share > 0 && rng.Float64() < share }
