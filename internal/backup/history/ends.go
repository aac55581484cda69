package history

import (
	"context"
	"errors"
	"slices"

	"github.com/quorate/quorate/internal/backup"
)

// Ends returns the states with which the histories of the catalog end: the newest one, and those of which it is not known that
// the newest one continues them.
func (s *Search) Ends(ctx context.Context) ([]backup.Head, error) {
	latest, err := s.latest(ctx)
	if err != nil {
		return nil, err
	}
	newest, strays, bases := s.Catalog.Ends(latest, s.damaged)
	all := []backup.Head{newest}
	var others []*backup.Stray
	for i := range strays[:min(len(strays), backup.MaxStrays)] {
		apart, err := s.apart(ctx, &strays[i])
		if err != nil {
			return nil, err
		}
		if apart {
			all, others = append(all, strays[i].End), append(others, &strays[i])
		}
	}
	for i := range bases {
		if slices.ContainsFunc(others, func(o *backup.Stray) bool { return o.Covers(bases[i].End.Index) }) {
			continue
		}
		apart, err := s.apart(ctx, &bases[i])
		if err != nil {
			return nil, err
		}
		if apart {
			all = append(all, bases[i].End)
		}
	}
	return all, nil
}

// latest returns the plan for the latest state, whose links were compared, as far as they can be read; nil: nothing leads
// there.
func (s *Search) latest(ctx context.Context) (*backup.Plan, error) {
	for {
		p, err := s.Catalog.Plan(backup.Target{}, s.damaged)
		if err != nil {
			return nil, nil
		}
		again, err := s.compare(ctx, p.Links())
		switch {
		case errors.Is(err, backup.ErrSealed), errors.Is(err, backup.ErrRecipients):
			return p, nil
		case err != nil:
			return nil, err
		case !again:
			return p, nil
		}
	}
}
