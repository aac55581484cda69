package replay

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/backup"
)

// Extend applies what follows a state, up to a target that is not before it, by segments that lead on from the state's own
// base. An error is Run's, and names the base where entries differ; no other objects are tried. After one the state is where it
// says, and can only be closed.
func (s *State) Extend(ctx context.Context, o Options, c *backup.Catalog, target backup.Target) error {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	own := &backup.Catalog{Cluster: c.Cluster, Bases: []backup.Base{s.Plan.Base}, Segments: c.Segments}
	plan, err := own.Plan(target, func(backup.Hash) bool { return false })
	if err != nil {
		return err
	}
	left := *plan
	for len(left.Segments) > 0 && left.Segments[0].End.Index <= s.At.Index {
		left.Segments = left.Segments[1:]
	}
	r := &replaying{Options: &o, ctx: ctx, plan: &left, state: s, progress: Progress{OfBytes: left.LogBytes()}}
	if err := r.log(); err != nil {
		if errors.Is(err, ErrDiffers) {
			err = ofBase(&plan.Base, err)
		}
		return err
	}
	s.Plan = plan
	return nil
}
