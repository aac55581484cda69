package backup

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Target is the state that a restore is asked for: the last one within all of these bounds that are not zero. The zero value is
// the latest state.
type Target struct {
	Index    consensus.Index // nothing after this entry
	Revision kv.Revision     // nothing that makes the revision larger
	Time     int64           // nothing after this time, in milliseconds since 1970
}

// ParseTarget reads "latest", a time (RFC 3339), a revision, or "entry:INDEX".
func ParseTarget(word string) (Target, error) {
	if word == "latest" {
		return Target{}, nil
	}
	if digits, entry := cutPrefix(word, "entry:"); entry {
		if n, err := strconv.ParseUint(digits, 10, 62); err == nil && n > 0 {
			return Target{Index: consensus.Index(n)}, nil
		}
	}
	if n, err := strconv.ParseInt(word, 10, 62); err == nil && n > 0 {
		return Target{Revision: kv.Revision(n)}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, word); err == nil && at.UnixMilli() > 0 {
		return Target{Time: at.UnixMilli()}, nil
	}
	return Target{}, fmt.Errorf("%q: write \"latest\", a time such as 2026-11-30T12:00:00Z, a revision, or entry:INDEX", word)
}

func cutPrefix(word, prefix string) (string, bool) {
	if len(word) > len(prefix) && word[:len(prefix)] == prefix {
		return word[len(prefix):], true
	}
	return word, false
}

func (t Target) String() string {
	switch {
	case t.Index > 0:
		return fmt.Sprintf("entry %d", t.Index)
	case t.Revision > 0:
		return fmt.Sprintf("revision %d", t.Revision)
	case t.Time > 0:
		return Time(t.Time)
	}
	return "the latest state"
}

// Time writes milliseconds since 1970 for operators.
func Time(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Within reports whether a state is not after the target.
func (t Target) Within(index consensus.Index, m Moment) bool {
	return (t.Index == 0 || index <= t.Index) && (t.Revision == 0 || m.Revision <= t.Revision) &&
		(t.Time == 0 || m.Time <= t.Time)
}

// reached reports whether what comes after a state is not needed: it is the target, or after it.
func (t Target) reached(h *Head) bool {
	return t.Index != 0 && h.Index >= t.Index || t.Revision != 0 && h.Revision >= t.Revision || t.Time != 0 && h.Time > t.Time
}

// Plan is what a restore takes.
type Plan struct {
	Target   Target
	Base     Base
	Segments []Stored // in the order in which they are applied; the last one perhaps not to its end
	End      Head     // of the last segment, or of the base
	Newest   Head     // the last state that the place knows of
	// Short tells that the target is after all that the place has: the state that is restored is the last one.
	Short bool
	lives bool // segments lead on to the newest state: else it may be of a history that ended

	rest  []Stored // segments that lead on from End, as far as there are some
	links []Link   // of Segments and rest, as far as names do not prove them
}

// LogBytes is the size of the segments.
func (p *Plan) LogBytes() (total int64) {
	for i := range p.Segments {
		total += p.Segments[i].Size
	}
	return total
}

// LinkOf returns the link by which a plan takes a segment, if the names do not prove it.
func (p *Plan) LinkOf(segment Hash) (Link, bool) {
	for i := range p.links {
		if p.links[i].Segment.Hash == segment {
			return p.links[i], true
		}
	}
	return Link{}, false
}

// Doubts returns the links by which segments lead on from the end of a plan, as far as names do not prove them.
func (p *Plan) Doubts() (doubts []Link) {
	for i := range p.rest {
		if l, found := p.LinkOf(p.rest[i].Hash); found {
			doubts = append(doubts, l)
		}
	}
	return doubts
}

// Links returns all links of a plan, and of what leads on from its end, that names do not prove.
func (p *Plan) Links() []Link { return p.links }

// LineEnd is the last state to which the base of a plan leads, by the segments of the plan and those that continue them.
func (p *Plan) LineEnd() Head {
	if n := len(p.rest); n > 0 {
		return p.rest[n-1].Head()
	}
	return p.End
}

// Lives reports whether a plan leads on to the newest state of the place by its names.
func (p *Plan) Lives() bool { return p.lives }

// UnreachableError says that no base and no segments lead to a target.
type UnreachableError struct {
	Target Target
	Best   *Head // the last state before the target to which some lead; nil: none
	Breaks consensus.Index
	Kept   *KeptName // what retention has removed; nil: nothing that is known
	Why    string
}

func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("%v cannot be restored: %s", e.Target, e.Why)
	if e.removed() {
		text += fmt.Sprintf(" (retention removed the log up to entry %d at %s: any moment since %s is kept, and older bases "+
			"by themselves)", e.Kept.Floor, Time(e.Kept.Time), Time(e.Kept.From))
	}
	if e.Best == nil {
		return text
	}
	return fmt.Sprintf("%s. The last state before it that can be restored is entry %d, revision %d, of %s: ask for it with "+
		"--at entry:%d", text, e.Best.Index, e.Best.Revision, Time(e.Best.Time), e.Best.Index)
}

// removed reports whether the state may have been one of those that retention removed.
func (e *UnreachableError) removed() bool {
	return e.Kept != nil && (e.Best == nil || e.Breaks <= e.Kept.Floor)
}

// Plan finds the newest base from which segments lead to a target, leaving out objects that were found to be missing or
// damaged. The error is an UnreachableError.
func (c *Catalog) Plan(target Target, without func(Hash) bool) (*Plan, error) {
	newest, found := c.Newest()
	if !found || len(c.Bases) == 0 {
		return nil, &UnreachableError{Target: target, Kept: c.Kept,
			Why: fmt.Sprintf("the place has no base of cluster %v", c.Cluster) + c.unsearched()}
	}
	var best, other *Plan
	for i := len(c.Bases) - 1; i >= 0; i-- {
		base := &c.Bases[i]
		if without(base.Hash) || !target.Within(base.Index, base.Moment) {
			continue
		}
		p := c.from(base, target, newest, without)
		leads := p.reaches(target)
		if leads && p.lives {
			return p, nil
		}
		if leads && other == nil {
			other = p
		}
		if best == nil || p.End.later(&best.End) {
			best = p
		}
	}
	if other != nil {
		return other, nil
	}
	return nil, c.unreachable(target, best, without)
}

// unreachable says why no base leads to a target, and which state can be had. best is the plan that comes nearest to it; nil:
// no base is early enough.
func (c *Catalog) unreachable(target Target, best *Plan, without func(Hash) bool) error {
	e := &UnreachableError{Target: target, Kept: c.Kept}
	if best == nil {
		e.Why = "no base can be read"
		for i := range c.Bases {
			if b := &c.Bases[i]; !without(b.Hash) {
				e.Why = fmt.Sprintf("the first state that can be restored is later: entry %d, revision %d, of %s", b.Index,
					b.Revision, Time(b.Time))
				break
			}
		}
		return e
	}
	e.Best, e.Breaks = &best.End, best.End.Index+1
	e.Why = fmt.Sprintf("no object that can be read has entry %d", e.Breaks)
	if best.End.is(&best.Newest) {
		e.Why = "the place ends before it"
	}
	for _, g := range c.Gaps {
		if g.After < e.Breaks && e.Breaks < g.Until {
			e.Why = fmt.Sprintf("entries %d to %d were never shipped, a gap that was noted at %s", g.After+1, g.Until-1,
				Time(g.Time))
		}
	}
	e.Why += c.unsearched()
	return e
}

// unsearched says that History left out what may lead to the target.
func (c *Catalog) unsearched() string {
	if c.overlaps <= mostOverlaps {
		return ""
	}
	return fmt.Sprintf("; of the history that was chosen, what is before %d overlaps of segments was not looked at: --history "+
		"with an earlier state of it looks further", mostOverlaps)
}

// reaches reports whether a plan ends with the target, or with the last state that there is before it.
func (p *Plan) reaches(target Target) bool {
	if p.End.is(&p.Newest) {
		p.Short = target.Time > p.Newest.Time
		return target.Index <= p.Newest.Index && target.Revision <= p.Newest.Revision
	}
	return target.reached(&p.End)
}

// from returns the longest plan from a base, cut where it has reached the target.
func (c *Catalog) from(base *Base, target Target, newest Head, without func(Hash) bool) *Plan {
	p := &Plan{Target: target, Base: *base, End: base.Head(), Newest: newest}
	paths := c.reach(base, without)
	last := paths.end(c, &newest)
	if p.lives = last >= 0 || p.End.is(&newest); !p.lives {
		last = paths.latest(c)
	}
	for ; last >= 0; last = paths.edges[last].before {
		e := &paths.edges[last]
		p.Segments = append(p.Segments, c.Segments[e.segment])
		if !e.sure {
			p.links = append(p.links, paths.link(c, base, e))
		}
	}
	slices.Reverse(p.Segments)
	slices.Reverse(p.links)
	for i := range p.Segments {
		if target.reached(&p.End) {
			p.Segments, p.rest = p.Segments[:i:i], p.Segments[i:]
			break
		}
		p.End = p.Segments[i].Head()
	}
	return p
}
