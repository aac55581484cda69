package member

import (
	"slices"
	"time"
)

// pace decides how this member offers proposals to all voters: at once, stamped with when they are due, or not at all. It
// looks at what became of those of the last second. Several proposers at once are met in another order by each member, which
// then choose different revisions: stamps mend that, and cost a moment where members are near. What conflicts they do not
// mend. Where few offers are agreed on, they would only cost.
type pace struct {
	mode   paceMode
	next   paceMode  // after a rest
	since  time.Time // in this mode
	looked time.Time
	last   outcomes
}

// outcomes count what became of offers: all of them, those that were agreed on, and those that were given different
// revisions. The others were refused.
type outcomes struct{ tried, agreed, disagreed uint64 }

type paceMode uint8

const (
	paceAtOnce paceMode = iota
	paceStamped
	paceRest
)

const (
	paceLook       = time.Second
	paceFewest     = 16               // offers in a second that tell something
	paceDisorder   = 0.15             // a share of offers with different revisions that calls for stamps
	paceWorthwhile = 0.25             // below this share that is agreed on, resting is better
	paceTryAtOnce  = 30 * time.Second // how long to keep stamping before looking whether it is still needed
	paceRests      = 10 * time.Second
)

// look takes the counters and returns the mode to go on in.
func (p *pace) look(now time.Time, counted outcomes) paceMode {
	if p.looked.IsZero() {
		p.since, p.looked = now, now
	}
	if now.Sub(p.looked) < paceLook {
		return p.mode
	}
	offers := counted.tried - p.last.tried
	share := func(counted, last uint64) float64 { return float64(counted-last) / float64(max(1, offers)) }
	agreed, disagreed := share(counted.agreed, p.last.agreed), share(counted.disagreed, p.last.disagreed)
	p.looked, p.last = now, counted
	settled := offers >= paceFewest && now.Sub(p.since) >= 2*paceLook // offers from before may still be answered
	switch {
	case p.mode == paceRest && now.Sub(p.since) >= paceRests:
		p.turn(p.next, now)
	case p.mode == paceRest:
	case settled && p.mode == paceAtOnce && disagreed > paceDisorder:
		p.turn(paceStamped, now)
	case settled && agreed < paceWorthwhile:
		p.next = p.mode
		p.turn(paceRest, now)
	case p.mode == paceStamped && now.Sub(p.since) >= paceTryAtOnce:
		p.turn(paceAtOnce, now)
	}
	return p.mode
}

func (p *pace) turn(mode paceMode, now time.Time) { p.mode, p.since = mode, now }

// stampAhead returns how far ahead a stamp must be so that a superquorum, of this member, the leader and the nearest of the
// others, has received what it marks by then: half of the longest of their round trips, and a little.
func stampAhead(leader time.Duration, others []time.Duration, super int) time.Duration {
	farthest := leader
	if needed := super - 2; needed > 0 {
		if needed > len(others) {
			return 0 // nobody knows how far some of them are
		}
		nearest := slices.Sorted(slices.Values(others))
		farthest = max(farthest, nearest[needed-1])
	}
	return farthest/2 + max(time.Millisecond, farthest/25)
}
