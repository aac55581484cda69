package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// Rival is a segment that has another state for the entry with which a plan ends than the plan's own last segment.
type Rival struct {
	Segment *backup.Stored
	Sum     uint64 // the chain's sum after it, as it claims
}

// Rivals compares the state to which a plan leads with all segments beside its line that have a state for its entry, by what
// they hold: names alone claim that they lead back to the line. again is true if something was found that makes another plan.
// Those for which an identity is missing say nothing. More than backup.MaxStrays are an error.
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
	if len(beside) > backup.MaxStrays {
		return nil, false, fmt.Errorf("more than %d segments at the place have entry %d: somebody else writes there. Find "+
			"out who, and remove what is not of the cluster; or ask for another state, or name the history that is meant: "+
			"--history %s", backup.MaxStrays, to, backup.PointName(p.LineEnd().Point))
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
		says, known, bad, err := s.claim(ctx, b, at.Index)
		if err != nil {
			return nil, false, err
		}
		again = again || bad
		if known && says.has && says.sum != at.Sum {
			rivals = append(rivals, Rival{b, says.end})
		}
	}
	if len(rivals) > 0 && !again {
		again, err = s.crossing(ctx, p)
	}
	return rivals, again, err
}

// Compared returns the next plan, and its rivals, or a segment that has other entries and comes back to its sums: a restore
// replays its line first if there are some.
func (s *Search) Compared(ctx context.Context) (*backup.Plan, []Rival, error) {
	for {
		p, err := s.Plan(ctx)
		if err != nil {
			return nil, nil, err
		}
		twin, again, err := s.Twins(ctx, p)
		if err != nil {
			return nil, nil, errors.Join(append(s.found, err)...)
		}
		if again {
			continue
		}
		if twin != nil {
			return p, []Rival{{Segment: twin.Chain[0]}}, nil
		}
		rivals, again, err := s.Rivals(ctx, p)
		if err != nil {
			return nil, nil, errors.Join(append(s.found, err)...)
		}
		if !again {
			return p, rivals, nil
		}
	}
}

// claim returns what a segment says of the state after an entry. It is read once for that.
func (s *Search) claim(
	ctx context.Context, b *backup.Stored, at consensus.Index,
) (says claim, known, bad bool, err error) {
	if says, known = s.claims[b.Hash]; known && says.at == at {
		return says, true, false, nil
	}
	segment, bad, err := s.readable(ctx, b)
	if segment == nil {
		return says, false, bad, err
	}
	says = claim{at: at, end: segment.Last().Sum}
	says.sum, says.has = segment.SumAt(at)
	if s.claims == nil || len(s.claims) > backup.MaxStrays {
		s.claims = map[backup.Hash]claim{}
	}
	s.claims[b.Hash] = says
	return says, true, false, nil
}

// crossing compares the segments that names alone make ones of the history that was chosen with the states within them. again
// is true if one is of another history.
func (s *Search) crossing(ctx context.Context, p *backup.Plan) (again bool, err error) {
	links := s.Catalog.Crossing(p, s.unreadable)
	for i := range links {
		through, err := s.through(ctx, &links[i])
		found := (*damage)(nil)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case errors.As(err, &found):
			s.Leave(found.object, found.err)
			again = true
		case err != nil:
			return false, err
		}
		again = again || !through
	}
	return again, nil
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
