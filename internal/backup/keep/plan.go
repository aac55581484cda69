package keep

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// Plan is what stays and what goes.
type Plan struct {
	Fates []Fate // in the order of the log
	// Floor is the entry of the oldest base that stays with its log: segments that end there or before are not needed.
	// Zero: all are.
	Floor consensus.Index
	From  int64 // any moment since can be restored, but for gaps; zero: as far back as there are bases
	// Refused says why nothing goes, though the rule would let something go.
	Refused string
	More    bool // half of the bases go at most: the others do next time
}

// Make makes a plan.
func Make(in *Input) *Plan {
	p := &Plan{Fates: make([]Fate, 0, len(in.Bases))}
	for i := range in.Bases {
		p.Fates = append(p.Fates, Fate{Base: in.Bases[i]})
		in.judge(&p.Fates[i].Base)
	}
	slices.SortFunc(p.Fates, func(a, b Fate) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Time, b.Time),
			bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	newest := p.newest()
	if newest >= 0 && in.Rule.Window > 0 {
		p.Refused = cmp.Or(in.intruder(p.Fates), p.refusal(in, &p.Fates[newest]), in.disorder(p.Fates))
	}
	anchor := p.anchor(in, newest)
	if in.Rule.Window == 0 || p.Refused != "" || anchor < 0 {
		p.keepAll(in, newest)
		return p
	}
	p.keepWindow(in, anchor, newest)
	p.keepOld(in)
	p.bound()
	for i := range p.Fates {
		if f := &p.Fates[i]; f.Log && (p.Floor == 0 || f.Index < p.Floor) {
			p.Floor = f.Index
		}
	}
	return p
}

// newest returns the last base that is whole, or -1.
func (p *Plan) newest() int {
	for i := len(p.Fates) - 1; i >= 0; i-- {
		if p.Fates[i].State == Whole {
			return i
		}
	}
	return -1
}

// refusal says why times are not believed.
func (p *Plan) refusal(in *Input, newest *Fate) string {
	switch late := ahead.Milliseconds(); {
	case newest.Time > in.Now+late:
		return fmt.Sprintf("the newest base is of %s, and the clock here says %s: set the clocks of the members",
			backup.Time(newest.Time), backup.Time(in.Now))
	case newest.Taken != 0 && newest.Time > newest.Taken+late:
		return fmt.Sprintf("the newest base is of %s, and the place took it at %s by its own clock: set the clocks",
			backup.Time(newest.Time), backup.Time(newest.Taken))
	}
	for i := 1; i < len(p.Fates); i++ {
		a, b := &p.Fates[i-1], &p.Fates[i]
		if a.State != Unreadable && b.State != Unreadable && a.Epoch == b.Epoch && a.Index == b.Index &&
			a.Set == b.Set && a.Sum != b.Sum { // labels of different sets of recipients cannot be compared

			return fmt.Sprintf("there are two different states of entry %d: a member applied something else. Find out which "+
				"one is right (quorate backup verify --at entry:%d), and delete the other's manifest", a.Index, a.Index)
		}
	}
	return ""
}

// anchor returns the newest base that is older than the window, by the times of bases and by the place's clock, and from which
// all later states can be reached; -1: there is none.
func (p *Plan) anchor(in *Input, newest int) int {
	window := (in.Rule.Window + Slack).Milliseconds()
	most := max(stepFloor, in.Rule.Window/4).Milliseconds()
	age, after := int64(0), newest
	for i := newest - 1; i >= 0; i-- {
		b := &p.Fates[i]
		if b.State != Whole {
			continue
		}
		age += min(max(p.Fates[after].Time-b.Time, 0), most)
		after = i
		last := &p.Fates[newest]
		if min(age, last.Time-b.Time, last.takenAfter(&b.Base)) >= window && in.leadsOn(&b.Base) {
			return i
		}
	}
	return -1
}

// takenAfter returns by how much later the place took a base than another one, by its own clock, in milliseconds: clocks of
// members that differ by days would make old what was just put. It is without bound if the place does not say.
func (b *Base) takenAfter(other *Base) int64 {
	if b.Taken <= 0 || other.Taken <= 0 {
		return math.MaxInt64
	}
	return b.Taken - other.Taken
}

// leadsOn reports whether later epochs began after a base: one that they left behind may be of a history that was lost.
func (in *Input) leadsOn(b *Base) bool {
	for epoch, first := range in.Firsts {
		if epoch > b.Epoch && b.Index >= first {
			return false
		}
	}
	return true
}

func (p *Plan) keepAll(in *Input, newest int) {
	for i := range p.Fates {
		f := &p.Fates[i]
		f.Kept, f.Log = true, true
		switch {
		case in.Rule.Window == 0:
			f.Why = append(f.Why, "all is kept")
		case p.Refused != "":
			f.Why = append(f.Why, "nothing is removed now")
		default:
			f.Why = append(f.Why, p.within(in, i, newest))
		}
	}
}

// within says why a base stays with its log, and notes until when.
func (p *Plan) within(in *Input, i, newest int) string {
	f := &p.Fates[i]
	if i >= newest {
		return "the newest base"
	}
	next := i + 1
	for p.Fates[next].State != Whole {
		next++
	}
	f.Until = p.Fates[next].Time + (in.Rule.Window + Slack).Milliseconds()
	return "the last " + span(in.Rule.Window) + " need it"
}

func (p *Plan) keepWindow(in *Input, anchor, newest int) {
	p.From = p.Fates[anchor].Time
	for i := range p.Fates {
		// Bases of former epochs are before the anchor, and may be of the same history as what comes after it.
		if f := &p.Fates[i]; i >= anchor || f.Index >= p.Fates[anchor].Index {
			f.Kept, f.Log = true, true
			f.Why = append(f.Why, p.within(in, i, newest))
		}
	}
}

// keepOld keeps older bases without their log.
func (p *Plan) keepOld(in *Input) {
	for i := range p.Fates {
		if f := &p.Fates[i]; f.State == Unreadable && !f.Kept {
			f.Kept, f.Why = true, []string{"it cannot be read: remove its manifest by hand"}
		}
	}
	for _, c := range in.Rule.counts() {
		p.keepLast(c, *c.is, func(s State) bool { return s == Whole })
		p.keepLast(c, *c.is, possible) // files may be there that the list omitted
	}
}

// possible reports whether a base may be of use, though it may replace no other.
func possible(s State) bool { return s == Whole || s == Lacking || s == Late }

// keepLast keeps the last base of each of the last days, weeks, months or years that have one.
func (p *Plan) keepLast(c count, most int, counts func(State) bool) {
	before, n := "", 0
	for i := len(p.Fates) - 1; i >= 0 && most > 0; i-- {
		f := &p.Fates[i]
		if !counts(f.State) {
			continue
		}
		unit, until := c.unitOf(f.Time, most)
		if unit == before {
			continue
		}
		if n++; n > most {
			return
		}
		before = unit
		f.Kept = true
		if why := "the last of " + unit; !slices.Contains(f.Why, why) {
			f.Why = append(f.Why, why)
			f.Until = max(f.Until, until)
		}
	}
}

// unitOf names the day, week, month or year of a time, and says when the number of units is over that begin with it.
func (c *count) unitOf(ms int64, n int) (name string, until int64) {
	at := time.UnixMilli(ms).UTC()
	day := at.Truncate(24 * time.Hour)
	switch c.unit {
	case "day":
		return day.Format("2006-01-02"), day.AddDate(0, 0, n).UnixMilli()
	case "week":
		year, week := at.ISOWeek()
		monday := day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
		return fmt.Sprintf("week %d of %d", week, year), monday.AddDate(0, 0, 7*n).UnixMilli()
	case "month":
		first := day.AddDate(0, 0, 1-day.Day())
		return first.Format("January 2006"), first.AddDate(0, n, 0).UnixMilli()
	}
	return at.Format("2006"), time.Date(at.Year()+n, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// bound lets at most half of the bases go at a time, the oldest first. The others stay with their log until then.
func (p *Plan) bound() {
	ours := 0
	for i := range p.Fates {
		if p.Fates[i].State != Strange {
			ours++
		}
	}
	left := max(1, ours/2)
	for i := range p.Fates {
		f := &p.Fates[i]
		switch {
		case f.Kept:
		case left > 0:
			left--
		default:
			f.Kept, f.Log, f.Why, p.More = true, true, []string{"goes next time: half of the bases go at most"}, true
		}
	}
}
