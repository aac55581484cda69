package offers

import "time"

// Policy decides how a proposer (a member or a native client) offers proposals to all voters: without a stamp, with a
// stamp that says when they are due, or not at all. It decides by the outcomes of the last second. If several proposers
// offer at once, each voter receives the proposals in another order, and the voters choose different revisions. Stamps
// prevent that; they delay proposals a little where members are near, and do not help against conflicts. If few offers
// are agreed on, offers pause.
type Policy struct {
	faults Faults
	mode   Mode
	resume Mode      // after a pause
	since  time.Time // in this mode
	looked time.Time
	last   Outcomes
}

// Outcomes count offers: all that were tried, those that the voters agreed on, and those for which they chose different
// revisions. The others were refused. A native client does not know why an offer failed: it counts an offer as
// disagreed until it is agreed on, so its Disagreed may fall.
type Outcomes struct{ Tried, Agreed, Disagreed uint64 }

// Mode is a way to offer.
type Mode uint8

// The modes.
const (
	AtOnce Mode = iota
	Stamped
	Paused
)

const (
	lookInterval    = time.Second
	fewestOffers    = 16               // in an interval, so that their shares mean something
	disorderShare   = 0.15             // with a larger share of disagreed offers, stamps are used
	worthwhileShare = 0.25             // with a smaller share of agreed offers, offers pause
	stampedFor      = 30 * time.Second // how long to stamp before trying without
	pausedFor       = 10 * time.Second
)

// Look takes the counters and returns the mode to go on in.
func (p *Policy) Look(now time.Time, counted Outcomes) Mode {
	if p.looked.IsZero() {
		p.since, p.looked = now, now
	}
	if now.Sub(p.looked) < lookInterval {
		return p.mode
	}
	offers := counted.Tried - p.last.Tried
	share := func(counted, last uint64) float64 {
		return max(0, float64(int64(counted-last))) / float64(max(1, offers))
	}
	agreed, disagreed := share(counted.Agreed, p.last.Agreed), share(counted.Disagreed, p.last.Disagreed)
	p.looked, p.last = now, counted
	settled := offers >= fewestOffers && now.Sub(p.since) >= 2*lookInterval // offers from before may still be answered
	switch {
	case p.mode == Paused && now.Sub(p.since) >= pausedFor && !p.faults.StayPaused:
		p.turn(p.resume, now)
	case p.mode == Paused:
	case settled && p.mode == AtOnce && disagreed > disorderShare:
		p.turn(Stamped, now)
	case settled && agreed < worthwhileShare:
		p.resume = p.mode
		p.turn(Paused, now)
	case p.mode == Stamped && now.Sub(p.since) >= stampedFor:
		p.turn(AtOnce, now)
	}
	return p.mode
}

func (p *Policy) turn(mode Mode, now time.Time) { p.mode, p.since = mode, now }
