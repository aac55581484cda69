package backup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// clocksApart is by how much the times of one entry may differ that two members have shipped at once, in milliseconds.
const clocksApart int64 = 60_000

// Said is the time of a state, as an object says it: a segment that has its entry, or a base.
type Said struct {
	Head
	Segment *Stored
	Base    *Base
}

func (s *Said) object() string {
	if s.Base != nil {
		return s.Base.String()
	}
	return s.Segment.String()
}

// TimesError says that a time, or a revision, names no state, since at a place they fall along the log.
type TimesError struct {
	Target Target
	At     Said // the last state within the target, by the plan
	Other  Said // a state before At with a time after the target, or one after At with a time within it
	Before Head // the last state within the target that is before Other, if that is before At; zero: none is known
	Beyond bool // nothing is known to lead to Other
}

func (e *TimesError) Error() string {
	other := &e.Other.Head
	if other.Index <= e.At.Index || e.Beyond {
		other = &e.Before
	}
	kind, says, why := "times", func(s *Said) string { return Time(s.Time) }, "A clock was wrong, or somebody"
	if e.Target.Revision != 0 {
		kind, says, why = "revisions", func(s *Said) string { return fmt.Sprint("revision ", s.Revision) }, "Somebody"
	}
	text := fmt.Sprintf("%v names no state: %s at the place fall along the log. Object %s says %s of entry %d, and object %s "+
		"says %s of entry %d. %s else writes there. Name the entry that is meant: --at entry:%d", e.Target, kind, e.At.object(),
		says(&e.At), e.At.Index, e.Other.object(), says(&e.Other), e.Other.Index, why, e.At.Index)
	if other.Index > 0 && other.Index != e.At.Index {
		text += fmt.Sprintf(" or --at entry:%d", other.Index)
	}
	return text
}

// Times are the moments of the states of a plan's line, and of what is before it, as objects say them. The target of the plan
// is a time or a revision. Its last state within that is one of the entries First to Last.
type Times struct {
	First, Last consensus.Index
	Within      *Stored // the segment that says which one; nil: First is Last

	at    Said
	plan  *Plan
	line  *line
	all   []Said
	loose []bool // of all: nothing leads from there to the line, as behind a gap
}

// Times returns what names say of times for a plan. Segments that are encrypted are among them: their names have times.
func (c *Catalog) Times(p *Plan, without func(Hash) bool) *Times {
	t := &Times{plan: p, at: Said{p.Base.Head(), nil, &p.Base}, First: p.Base.Index, Last: p.Base.Index}
	if n := len(p.Segments); n > 0 {
		s := &p.Segments[n-1]
		t.at = Said{p.End, s, nil}
		t.First, t.Last = p.End.Index, p.End.Index
		if !p.Target.Within(p.End.Index, p.End.Moment) {
			t.First, t.Last, t.Within = max(s.First-1, p.Base.Index), s.End.Index-1, s
		}
	}
	l := c.lineOf(c.joints(without), p)
	t.line = l
	down := c.contiguous(l.begin(), l.first.Epoch, without)
	add := func(s Said) {
		// A recovery may have lost what is of a former epoch.
		before := !c.chosen && s.Index < l.begin() && s.Epoch == l.first.Epoch
		if on := l.points[s.Point]; on || before {
			t.all, t.loose = append(t.all, s), append(t.loose, !on && s.Index < down)
		}
	}
	for i := range c.Segments {
		if s := &c.Segments[i]; !without(s.Hash) {
			add(Said{s.Head(), s, nil})
		}
	}
	for i := range c.Bases {
		if b := &c.Bases[i]; !without(b.Hash) {
			add(Said{b.Head(), nil, b})
		}
	}
	return t
}

// contiguous returns the first state from which segments have all entries up to a later one, by their names.
func (c *Catalog) contiguous(to consensus.Index, epoch uint64, without func(Hash) bool) consensus.Index {
	ranges := make([]*Stored, 0, len(c.Segments))
	for i := range c.Segments {
		if s := &c.Segments[i]; s.Epoch == epoch && s.First <= to && !without(s.Hash) {
			ranges = append(ranges, s)
		}
	}
	slices.SortFunc(ranges, func(a, b *Stored) int { return cmp.Compare(b.End.Index, a.End.Index) })
	for _, s := range ranges {
		if s.End.Index < to {
			break
		}
		to = min(to, s.First-1)
	}
	return to
}

// Settle tells what Within holds.
func (t *Times) Settle(within *Segment) {
	t.at = Said{t.plan.Base.Head(), nil, &t.plan.Base}
	if n := len(t.plan.Segments); n > 1 {
		t.at = Said{t.plan.Segments[n-2].Head(), &t.plan.Segments[n-2], nil}
	}
	for i := range within.Items {
		index, m := within.Items[i].Entry.Index, Moment{within.Items[i].Revision, within.Items[i].Time}
		if !t.plan.Target.Within(index, m) {
			break
		}
		if index > t.at.Index {
			t.at = Said{Head{t.Within.Epoch, Point{index, within.Items[i].Sum}, m, 0}, t.Within, nil}
		}
	}
	t.First, t.Last = t.at.Index, t.at.Index
}

// early reports whether a moment behind the last state within the target is within the target, too, and not only by another
// member's clock: entries that write no key have the revision of the one before them.
func (t *Times) early(m Moment) bool {
	target := t.plan.Target
	if target.Revision != 0 && m.Revision == target.Revision && t.at.Revision == target.Revision {
		return false
	}
	return target.Within(0, m) && (target.Time == 0 || m.Time <= target.Time-clocksApart)
}

// late reports whether a moment before the last state within the target is after the target, by more than clocks differ.
func (t *Times) late(m Moment, apart int64) bool {
	target := t.plan.Target
	return target.Revision != 0 && m.Revision > target.Revision || target.Time != 0 && m.Time > target.Time+apart
}

// Fallen returns what names say against the last state within the target. Behind a gap the clock of another member may have
// been ahead for long: nothing there is compared by the minute.
func (t *Times) Fallen() (fallen []Said) {
	for i, s := range t.all {
		apart := clocksApart
		if t.loose[i] {
			apart = apartBy
		}
		if s.Index <= t.First && t.late(s.Moment, apart) || s.Index > t.Last && t.early(s.Moment) {
			fallen = append(fallen, s)
		}
	}
	return fallen
}

// Beside returns the segments beside the plan's last one that have the last entry within the target, or the next one.
func (t *Times) Beside() (beside []*Stored) {
	for i := range t.all {
		s := t.all[i].Segment
		if s != nil && (t.Within == nil || s.Hash != t.Within.Hash) && s.First <= t.Last+1 && t.Last < s.End.Index {
			beside = append(beside, s)
		}
	}
	return beside
}

// Inside returns what the entries of a segment say against the last state within the target.
func (t *Times) Inside(stored *Stored, s *Segment) (fallen []Said) {
	for i := range s.Items {
		index, m := s.Items[i].Entry.Index, Moment{s.Items[i].Revision, s.Items[i].Time}
		if index == t.Last && t.late(m, clocksApart) || index == t.Last+1 && t.early(m) {
			said := Said{stored.Head(), stored, nil}
			said.Index, said.Moment = index, m
			fallen = append(fallen, said)
		}
	}
	return fallen
}

// Error is the TimesError for what is said against the last state within the target. It advises entries of the line alone:
// those can be had.
func (t *Times) Error(fallen *Said) *TimesError {
	e := &TimesError{Target: t.plan.Target, At: t.at, Other: *fallen}
	for _, s := range t.all {
		if s.Index < fallen.Index && t.line.points[s.Point] && t.plan.Target.Within(0, s.Moment) && s.Index > e.Before.Index {
			e.Before = s.Head
		}
	}
	if e.Beyond = fallen.Index > t.line.last.Index; e.Before.Index == e.At.Index {
		e.Before = Head{}
	}
	return e
}
