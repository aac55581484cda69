package groupcommit

import (
	"math"
	"time"
)

const (
	// enough proposals are a batch whose costs do not matter for each of them.
	enough = 16
	// worthwhile proposals must be expected in a window for all of it to be waited for.
	worthwhile = 4
	// memory is how many batches an average is of, roughly.
	memory = 8
	// longestSilence is how much of a silence counts in the average time between batches, in windows. Otherwise the first of
	// many proposals after it would be taken for one of few.
	longestSilence = 8
)

// Gate says when the next batch begins.
type Gate struct {
	window time.Duration
	begun  time.Time // when the last batch began
	most   int       // proposals that were open at once since then
	// Averages of the last batches:
	open  float64 // most
	taken float64 // proposals in one
	apart float64 // nanoseconds from one to the next
}

// New returns a gate that lets a batch begin once window has passed since the one before it, at the latest. Zero: always.
func New(window time.Duration) Gate { return Gate{window: max(0, window)} }

// Holds reports whether there is anything to decide.
func (g *Gate) Holds() bool { return g.window > 0 }

// Pass reports whether a batch begins now, with all that waits. running is how many proposals the leader has written that are
// not known to be committed. It is asked whenever something has come.
func (g *Gate) Pass(now time.Time, waiting, running int) bool {
	g.most = max(g.most, waiting+running)
	since := now.Sub(g.begun)
	back := since < 0 // a clock was set back
	if waiting == 0 || waiting < g.expected() && !back && now.Before(g.Deadline()) {
		return false
	}
	g.begun = now
	g.open += (float64(g.most) - g.open) / memory
	g.most = 0
	g.taken += (float64(waiting) - g.taken) / memory
	g.apart += (float64(min(max(0, since), longestSilence*g.window)) - g.apart) / memory
	return true
}

// expected returns how many proposals a batch waits for. Clients that go on only after an answer are all waiting here when as
// many wait as are usually open: then no more can be expected.
func (g *Gate) expected() int { return max(1, min(enough, int(math.Round(g.open)))) }

// Deadline returns when a batch begins at the latest: where few proposals come in a window, earlier, or at once. Waiting
// would save little there.
func (g *Gate) Deadline() time.Time {
	if g.apart == 0 {
		return g.begun
	}
	inWindow := g.taken / g.apart * float64(g.window)
	share := (inWindow - 1) / (worthwhile - 1)
	return g.begun.Add(time.Duration(max(0, min(1, share)) * float64(g.window)))
}
