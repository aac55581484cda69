package history

import (
	"context"

	"github.com/quorate/quorate/internal/backup"
)

// Rival is a segment that has another state for the entry with which a plan ends than the plan's own last segment.
type Rival struct {
	Segment *backup.Stored
	Sum     uint64 // the chain's sum after it, as it claims
}

// Rivals compares the state to which a plan leads with all segments beside its line that have a state for its entry, by what
// they hold: names alone claim that they lead back to the line. again is true if damage was found that makes another plan.
// Those for which an identity is missing say nothing.
func (s *Search) Rivals(ctx context.Context, p *backup.Plan) (rivals []Rival, again bool, err error) {
	n := len(p.Segments)
	if n == 0 {
		return nil, false, nil
	}
	last := &p.Segments[n-1]
	from, to := last.Start().Index, last.End.Index
	if at := p.Target.Index; at != 0 && from <= at && at < to {
		from, to = at, at
	}
	beside := s.Catalog.Rivals(p, from, to, s.unreadable)
	if len(beside) == 0 {
		return nil, false, nil
	}
	own, again, err := s.readable(ctx, last)
	if own == nil {
		return nil, again, err
	}
	at := endOf(own, p.Target)
	for _, b := range beside {
		if at.Index+1 < b.First || b.End.Index < at.Index || b.Set == 0 && (b.End == at || b.Start() == at) {
			continue
		}
		other, bad, err := s.readable(ctx, b)
		if err != nil {
			return nil, false, err
		}
		if again = again || bad; other == nil {
			continue
		}
		if sum, has := other.SumAt(at.Index); has && sum != at.Sum {
			rivals = append(rivals, Rival{b, other.Last().Sum})
		}
	}
	return rivals, again, nil
}

// endOf is the last state of a segment, or the one before it, that is within a target.
func endOf(s *backup.Segment, target backup.Target) backup.Point {
	at := backup.Point{Index: s.Items[0].Entry.Index - 1, Sum: s.Before}
	for i := range s.Items {
		item := &s.Items[i]
		if !target.Within(item.Entry.Index, backup.Moment{Revision: item.Revision, Time: item.Time}) {
			break
		}
		at = backup.Point{Index: item.Entry.Index, Sum: item.Sum}
	}
	return at
}

// Agrees reports whether the line of a plan, all of which was replayed, has the state with which a rival ends.
func (s *Search) Agrees(ctx context.Context, line *backup.Plan, rival *Rival) (bool, error) {
	for i := range line.Segments {
		own := &line.Segments[i]
		if own.First > rival.Segment.End.Index || own.End.Index < rival.Segment.End.Index {
			continue
		}
		segment, err := s.segment(ctx, own)
		if err != nil {
			return false, err
		}
		sum, has := segment.SumAt(rival.Segment.End.Index)
		return has && sum == rival.Sum, nil
	}
	return false, nil
}
