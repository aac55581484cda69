package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// event is something that happens at a virtual time. Events of one time happen in the order in which they were made.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

// agenda is the one heap of everything that is going to happen.
type agenda struct {
	now    time.Duration
	seq    uint64
	events []event
}

// Now returns the virtual time since the world began.
func (a *agenda) Now() time.Duration { return a.now }

// After makes f happen once d has passed.
func (a *agenda) After(d time.Duration, f func()) {
	a.seq++
	a.events = append(a.events, event{a.now + max(d, 0), a.seq, f})
	at := len(a.events) - 1
	for at > 0 {
		up := (at - 1) / 2
		if !a.before(at, up) {
			break
		}
		a.events[at], a.events[up] = a.events[up], a.events[at]
		at = up
	}
}

func (a *agenda) before(i, j int) bool {
	x, y := &a.events[i], &a.events[j]
	return x.at < y.at || (x.at == y.at && x.seq < y.seq)
}

// next takes the earliest event, moves the time to it and returns what is to be done; nil at the end of the world.
func (a *agenda) next() func() {
	last := len(a.events) - 1
	if last < 0 {
		return nil
	}
	first := a.events[0]
	a.events[0] = a.events[last]
	a.events[last] = event{}
	a.events = a.events[:last]
	for at := 0; ; {
		least := at
		if l := 2*at + 1; l < last && a.before(l, least) {
			least = l
		}
		if r := 2*at + 2; r < last && a.before(r, least) {
			least = r
		}
		if least == at {
			break
		}
		a.events[at], a.events[least] = a.events[least], a.events[at]
		at = least
	}
	a.now = first.at
	return first.do
}

// stream returns one of the independent random streams of a seed, so that a change in how one part draws leaves the
// others alone.
func stream(seed, number uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, number)) }

// exponential draws from an exponential distribution with a mean, bounded so that no draw stops the world.
func exponential(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * min(-math.Log(1-rng.Float64()), 10))
}

// between draws evenly from [lo, hi].
func between(rng *rand.Rand, lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(rng.Int64N(int64(hi-lo)+1))
}

// pick draws one of several values.
func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// chance is true in share of all draws.
func chance(rng *rand.Rand, share float64) bool { return share > 0 && rng.Float64() < share }
