package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/history"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/objects"
)

// ErrDiffers means that entries do not have the effect here that they had in the cluster.
var ErrDiffers = errors.New("the state does not have the sum that the cluster's had: the base was damaged before it was " +
	"summed, or this build applies an entry otherwise")

// ErrOtherHistory means that a segment does not continue what comes before it, though its name says so.
var ErrOtherHistory = errors.New("it is of another history of the cluster")

// objectError is damage, with the hash of the base or the segment that a plan must do without.
type objectError struct {
	without backup.Hash
	name    string
	err     error
	begun   bool // entries were applied that may not be those of the cluster
}

func (e *objectError) Error() string { return e.err.Error() }
func (e *objectError) Unwrap() error { return e.err }

// doubtful reports whether the object may be a good one that was applied to the wrong state.
func (e *objectError) doubtful() bool {
	return Later(e.err) || ofLaterBuild(e.err) || errors.Is(e.err, ErrDiffers) || errors.Is(e.err, ErrOtherHistory)
}

// run follows a plan, from the state to which another plan led, if there is one and the plan goes through it. With an error it
// returns the state, open, if another plan can go on from there: all that was applied to it has the cluster's sums.
func run(ctx context.Context, copies *copies, plan *backup.Plan, from *State) (_ *State, err error) {
	r := &replaying{Options: copies.Options, ctx: ctx, copies: copies, plan: plan, state: from}
	left := plan.Segments
	one, leftOfOne := copies.of(plan)
	switch {
	case from != nil:
		left, _ = from.rest(plan)
	case one != nil:
		left = leftOfOne
		if r.state, err = copies.reopen(one); err != nil {
			return nil, err
		}
	default:
		r.state = &State{Plan: plan}
		if err := r.base(); err != nil {
			return nil, err
		}
	}
	if r.state.Plan = plan; from != nil || one != nil {
		rest := *plan
		rest.Segments = left
		r.plan, r.progress.OfBytes = &rest, rest.LogBytes()
	}
	err = r.log()
	object := (*objectError)(nil)
	switch {
	case err == nil:
		return r.state, nil
	case errors.As(err, &object) && !object.begun && ctx.Err() == nil:
		return r.state, err
	}
	return nil, errors.Join(err, r.state.Close())
}

// replaying is one plan under way.
type replaying struct {
	*Options
	ctx      context.Context
	copies   *copies // nil: none are made
	plan     *backup.Plan
	state    *State
	progress Progress
	before   backup.Hash // of the segment that was applied last
}

// damage attributes an error to an object of the plan, if it is damage.
func damage(without backup.Hash, name string, err error) error {
	var found *fetch.DamageError
	switch {
	case errors.As(err, &found):
		return &objectError{without: without, name: name, err: err}
	case errors.Is(err, backup.ErrDamaged), errors.Is(err, ErrDiffers), errors.Is(err, ErrOtherHistory):
		return &objectError{without, name, &fetch.DamageError{Name: name, Err: err},
			errors.Is(err, ErrDiffers) || errors.Is(err, apply.ErrBadEntry)}
	case Later(err):
		return &objectError{without, name, fmt.Errorf("object %s: %w", name, err), true}
	case ofLaterBuild(err):
		return &objectError{without, name, fmt.Errorf("object %s: %w", name, err), false}
	case history.Hidden(err):
		return &objectError{without, name, fmt.Errorf("object %s: %w", name, err), false}
	}
	return err
}

// ofBase names the base as the object that is damaged, in place of the segment whose entries found that out.
func ofBase(base *backup.Base, err error) error {
	if found := (*fetch.DamageError)(nil); errors.As(err, &found) {
		err = found.Err
	}
	return &fetch.DamageError{Name: base.String(), Err: err}
}

// Later reports whether an error says that an entry is of a later build.
func Later(err error) bool {
	return errors.Is(err, apply.ErrLaterEntry) || errors.Is(err, apply.ErrUnknownCommand)
}

// ofLaterBuild reports whether an error says that an object has a form, or a level, of a later build. Somebody may have made it
// up: others are tried.
func ofLaterBuild(err error) bool {
	low := (*level.TooLowError)(nil)
	return errors.Is(err, backup.ErrLater) || errors.As(err, &low)
}

// ManifestOf reads the manifest of a base in so many bytes of memory: backup.TooLargeError. Zero: in what its form allows. It
// asks the place for none that cannot fit.
func ManifestOf(
	ctx context.Context, store objects.Store, base *backup.Base, open backup.Opener, most int64,
) (*backup.Manifest, error) {
	if within := backup.ManifestWithin(most); most > 0 && base.Size > within {
		return nil, &backup.TooLargeError{Bytes: base.Size, Most: within}
	}
	content, err := fetch.Object(ctx, store, base.String(), base.Hash, backup.ManifestWithin(most))
	if err != nil {
		return nil, err
	}
	return backup.OpenManifestWithin(&base.BaseName, content, open, most)
}

func (r *replaying) told(bytes int64) {
	r.progress.Bytes += bytes
	if r.Progress != nil {
		r.Progress(r.progress)
	}
}

// base downloads the base and opens it.
func (r *replaying) base() error {
	name := r.plan.Base.String()
	m, err := ManifestOf(r.ctx, r.Store, &r.plan.Base, r.Open, r.ObjectBytes)
	if err != nil {
		return damage(r.plan.Base.Hash, name, err)
	}
	if own := cmp.Or(r.Apply.Level, level.Own); m.Level > own {
		return damage(r.plan.Base.Hash, name, &level.TooLowError{Own: own, Active: m.Level})
	}
	r.progress.OfBytes = m.SizeBytes() + r.plan.LogBytes()
	if err := r.download(m); err != nil {
		if found := (*fetch.DamageError)(nil); errors.As(err, &found) {
			found.Of = name
		}
		return damage(r.plan.Base.Hash, name, err)
	}
	if r.state.store, err = r.OpenEngine(r.Dir); err != nil {
		return damage(r.plan.Base.Hash, name, fmt.Errorf("%w: its files are no store: %w", backup.ErrDamaged, err))
	}
	if err := r.open(m); err != nil {
		return errors.Join(damage(r.plan.Base.Hash, name, err), r.state.Close())
	}
	if err := r.copies.afterBase(r.state, m.SizeBytes()); err != nil {
		return errors.Join(err, r.state.Close())
	}
	return nil
}

// open opens the state of the base, which must be what the manifest says.
func (r *replaying) open(m *backup.Manifest) (err error) {
	if r.state.Machine, err = apply.Open(r.state.store, r.Apply); err != nil {
		if errors.Is(err, apply.ErrCorruptRow) || errors.Is(err, apply.ErrNotBootstrapped) {
			err = fmt.Errorf("%w: %w", backup.ErrDamaged, err)
		}
		return err
	}
	mark, position := r.state.Machine.Chain(), r.state.Machine.Applied()
	if r.state.Machine.Cluster() != consensus.ClusterID(m.Cluster) || mark.Since != m.Since || mark.Index != m.Index ||
		backup.Hex(mark.Sum) != m.Sum || position.Term != m.Term || r.state.Machine.Store().Revision() != m.Revision {
		return fmt.Errorf("%w: the store of the base is another one than the manifest says", backup.ErrDamaged)
	}
	r.state.At, r.state.named = m.Head(), r.plan.Base.Point
	return nil
}
