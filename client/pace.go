package client

import "time"

const (
	// paceLook and paceFewest are after how long, and how many offers, their success is judged.
	paceLook   = time.Second
	paceFewest = 16
	// paceGood is the share of offers that are decided from which on no stamps are needed; below paceWorthwhile offers cost
	// more than they give.
	paceGood       = 0.85
	paceWorthwhile = 0.25
	// paceStamps and paceRests are for how long the client stamps its offers, or makes none, before it looks whether that is
	// still needed.
	paceStamps = 30 * time.Second
	paceRests  = 10 * time.Second
)

// paceMode is how the client offers its writes to all voters.
type paceMode uint8

const (
	paceAtOnce  paceMode = iota
	paceStamped          // with when members should look at them, so that all meet those of several clients in one order
	paceRest             // not at all
)

// pace decides how to offer: at once while that works, stamped while others are busy, and not at all while nothing helps.
type pace struct {
	mode       paceMode
	since      time.Time // in this mode
	looked     time.Time
	tried, won uint64 // at that time
}

// look takes the counters since the start, and returns the mode to go on in.
func (p *pace) look(now time.Time, tried, won uint64) paceMode {
	if p.looked.IsZero() {
		p.since, p.looked = now, now
	}
	if p.mode == paceRest {
		if now.Sub(p.since) >= paceRests {
			p.turn(paceStamped, now, tried, won)
		}
		return p.mode
	}
	if now.Sub(p.looked) < paceLook || tried-p.tried < paceFewest {
		return p.mode
	}
	share := float64(won-p.won) / float64(tried-p.tried)
	p.looked, p.tried, p.won = now, tried, won
	switch {
	case p.mode == paceAtOnce && share < paceGood:
		p.turn(paceStamped, now, tried, won)
	case p.mode == paceAtOnce || now.Sub(p.since) < 2*paceLook: // offers from before may still be answered
	case share < paceWorthwhile:
		p.turn(paceRest, now, tried, won)
	case now.Sub(p.since) >= paceStamps:
		p.turn(paceAtOnce, now, tried, won)
	}
	return p.mode
}

func (p *pace) turn(mode paceMode, now time.Time, tried, won uint64) {
	p.mode, p.since, p.looked, p.tried, p.won = mode, now, now, tried, won
}
