package client

import "time"

const (
	// paceLook and paceFewest are after how long, and how many offers, their success is judged.
	paceLook   = time.Second
	paceFewest = 16
	// paceWorthwhile is the share of decided offers below which they cost more than they give; after paceRests they are
	// tried again.
	paceWorthwhile = 0.25
	paceRests      = 10 * time.Second
)

// pace lets the client stop offering its writes to all voters while that does not help: others write at the same time, or
// the leader's own way is as short.
type pace struct {
	looked      time.Time
	tried, won  uint64 // at that time
	restedUntil time.Time
}

// offers takes the counters since the start, and reports whether to go on.
func (p *pace) offers(now time.Time, tried, won uint64) bool {
	if now.Before(p.restedUntil) {
		return false
	}
	if !p.restedUntil.IsZero() || p.looked.IsZero() {
		p.looked, p.tried, p.won, p.restedUntil = now, tried, won, time.Time{}
	}
	if now.Sub(p.looked) < paceLook || tried-p.tried < paceFewest {
		return true
	}
	share := float64(won-p.won) / float64(tried-p.tried)
	p.looked, p.tried, p.won = now, tried, won
	if share < paceWorthwhile {
		p.restedUntil = now.Add(paceRests)
		return false
	}
	return true
}
