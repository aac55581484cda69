package member

import "time"

// pace decides how this member offers proposals to all voters: at once, stamped with when they are due, or not at all. It
// looks at how many of the last second were taken at one revision by all who answered. One proposer alone needs no stamps,
// which cost a moment where members are near; several need them, or else meet in another order everywhere; and where even
// stamps do not help, the offers would only cost.
type pace struct {
	mode         paceMode
	since        time.Time // in this mode
	looked       time.Time
	tried, agree uint64 // counters at the last look
}

type paceMode uint8

const (
	paceAtOnce paceMode = iota
	paceStamped
	paceRest
)

const (
	paceLook       = time.Second
	paceFewest     = 16               // offers in a second that tell something
	paceGood       = 0.85             // as a share: no need for stamps
	paceWorthwhile = 0.25             // below, resting is better
	paceTryAtOnce  = 30 * time.Second // how long to keep stamping before looking whether it is still needed
	paceRests      = 10 * time.Second
)

// look takes the counters, of offers and of those that were agreed on, and returns the mode to go on in.
func (p *pace) look(now time.Time, tried, agreed uint64) paceMode {
	if p.looked.IsZero() {
		p.since, p.looked = now, now
	}
	if now.Sub(p.looked) < paceLook {
		return p.mode
	}
	offers, agreements := tried-p.tried, agreed-p.agree
	p.looked, p.tried, p.agree = now, tried, agreed
	share := float64(agreements) / float64(max(1, offers))
	enough := offers >= paceFewest
	switch p.mode {
	case paceAtOnce:
		if enough && share < paceGood {
			p.turn(paceStamped, now)
		}
	case paceStamped:
		switch {
		case now.Sub(p.since) < 2*paceLook: // offers from before may still be answered
		case enough && share < paceWorthwhile:
			p.turn(paceRest, now)
		case now.Sub(p.since) >= paceTryAtOnce:
			p.turn(paceAtOnce, now)
		}
	case paceRest:
		if now.Sub(p.since) >= paceRests {
			p.turn(paceStamped, now)
		}
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
		farthest = max(farthest, nth(others, needed))
	}
	return farthest/2 + max(time.Millisecond, farthest/25)
}

// nth returns the n-th smallest.
func nth(values []time.Duration, n int) time.Duration {
	sorted := append([]time.Duration(nil), values...)
	for i := 1; i < len(sorted); i++ {
		for j := i; j > 0 && sorted[j-1] > sorted[j]; j-- {
			sorted[j-1], sorted[j] = sorted[j], sorted[j-1]
		}
	}
	return sorted[n-1]
}
