package replay

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/backup"
)

// Extend applies what follows a state of a backup in the clear, up to a target that is not before it, by segments that lead on
// from the state. The catalog need not have those before it. An error is Run's, and names the state's base where entries
// differ; no other objects are tried. After one the state is where it says, and can only be closed.
func (s *State) Extend(ctx context.Context, o Options, c *backup.Catalog, target backup.Target) error {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	from := backup.Base{BaseName: backup.BaseName{Cluster: c.Cluster, Epoch: s.At.Epoch, Point: s.At.Point,
		Moment: s.At.Moment}}
	own := &backup.Catalog{Cluster: c.Cluster, Bases: []backup.Base{from}, Segments: c.Segments}
	plan, err := own.Plan(target, func(backup.Hash) bool { return false })
	if err != nil {
		return err
	}
	plan.Base = s.Plan.Base
	r := &replaying{Options: &o, ctx: ctx, plan: plan, state: s, progress: Progress{OfBytes: plan.LogBytes()}}
	if err := r.log(); err != nil {
		if errors.Is(err, ErrDiffers) {
			err = ofBase(&plan.Base, err)
		}
		return err
	}
	s.Plan = plan
	return nil
}
