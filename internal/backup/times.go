package backup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Late is an object that has an earlier entry than a state, and a time that is later than the one that was asked for, by more
// than clocks differ. Along one history no time falls: one of the two is wrong.
type Late struct {
	Head
	Segment *Stored
	Base    *Base // if Segment is nil
}

func (l *Late) String() string {
	if l.Segment != nil {
		return l.Segment.String()
	}
	return l.Base.String()
}

// Late returns the objects that have entries up to that of a state, of its epoch and former ones, and a later time than a
// target, by their names; the first entries first. Nothing is late for a target without a time. The time of a base may be when
// it was made: one of the state itself is never late.
func (c *Catalog) Late(target Target, index consensus.Index, epoch uint64, without func(Hash) bool) (late []Late) {
	if target.Time == 0 {
		return nil
	}
	is := func(h Head, hash Hash) bool {
		return h.Epoch <= epoch && h.Time > target.Time+apartBy && !without(hash)
	}
	for i := range c.Segments {
		if s := &c.Segments[i]; s.First > index {
			break
		} else if s.End.Index <= index && is(s.Head(), s.Hash) {
			late = append(late, Late{Head: s.Head(), Segment: s})
		}
	}
	for i := range c.Bases {
		if b := &c.Bases[i]; b.Index < index && is(b.Head(), b.Hash) {
			late = append(late, Late{Head: b.Head(), Base: b})
		}
	}
	slices.SortStableFunc(late, func(a, b Late) int { return cmp.Compare(a.Index, b.Index) })
	return late
}

// TimesError says that the times of objects at a place do not rise with the entries, and that a time may name another state
// than it seems to.
type TimesError struct {
	Target Target
	At     Head // the last state within the target
	Late   Late
}

func (e *TimesError) Error() string {
	return fmt.Sprintf("%v is ambiguous: times at the place do not rise with the entries. Entry %d is the last one up to "+
		"then, and object %v, of entry %d, says that it is of %s. A clock was wrong, or somebody made one of them up. Look "+
		"at `quorate backup list`, and ask for an entry: --at entry:INDEX", e.Target, e.At.Index, &e.Late, e.Late.Index,
		Time(e.Late.Time))
}
