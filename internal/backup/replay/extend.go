package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/history"
)

// ErrUndecided means that a state could not be extended, since entries did not have the cluster's sums or do not apply: some
// segment may be damaged, or the base, or others lead on. Run finds out.
var ErrUndecided = errors.New("it is not known which object is damaged")

// Extend applies what follows a state of a backup in the clear, up to a target that is not before it, by segments that lead on
// from the state. The catalog need not have those before it. No other objects are tried: an error is that of an object that
// cannot be read, a backup.UnreachableError, or ErrUndecided, which names no object as damaged. After one the state is where
// it says, and can only be closed.
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
	look := &history.Search{Store: o.Store, Open: o.Open, Catalog: own, Target: target, ObjectBytes: o.ObjectBytes}
	if twin, _, err := look.Twins(ctx, plan); err != nil {
		return err
	} else if twin != nil {
		return fmt.Errorf("%w: %v has other entries than %v", ErrUndecided, twin.Chain[0], twin.Of)
	}
	plan.Base = s.Plan.Base
	r := &replaying{Options: &o, ctx: ctx, plan: plan, state: s, progress: Progress{OfBytes: plan.LogBytes()}}
	if err := r.log(); err != nil {
		if object := (*objectError)(nil); errors.As(err, &object) && object.doubtful() {
			err = fmt.Errorf("%w: %v", ErrUndecided, err)
		}
		return err
	}
	s.Plan = plan
	return nil
}
