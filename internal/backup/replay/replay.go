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
	return Later(e.err) || errors.Is(e.err, ErrDiffers) || errors.Is(e.err, ErrOtherHistory)
}

// Run restores the target. If objects are damaged it tries other plans for the same target; the error then says all that was
// found. A backup.UnreachableError is in it if no plan is left.
func Run(ctx context.Context, o Options, c *backup.Catalog, target backup.Target) (result *State, err error) {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	look := &history.Search{Store: o.Store, Open: o.Open, Catalog: c, Target: target, ObjectBytes: o.ObjectBytes,
		OneHistory: o.OneHistory, Damaged: o.Damaged}
	copies := &copies{Options: &o, catalog: c}
	if err := copies.remove(); err != nil {
		return nil, err
	}
	blamed := map[backup.Hash]bool{}
	var suspects suspects
	var kept *State // of a plan that ended at an object that could not be read; nil: there is none
	defer func() {
		if kept != nil {
			err = errors.Join(err, kept.Close())
		}
		if err = errors.Join(err, copies.drop()); err != nil && result != nil {
			result, err = nil, errors.Join(err, result.Close())
		}
	}()
	for {
		plan, err := next(ctx, copies, look, &kept)
		if err != nil && suspects.clear(look) {
			continue // they may be what is needed
		}
		if err != nil {
			return nil, err
		}
		if kept != nil {
			if _, through := kept.rest(plan); !through {
				closing := kept.Close()
				if kept, copies.wanted = nil, true; closing != nil {
					return nil, closing
				}
			}
		}
		state, err := run(ctx, copies, plan, kept)
		if kept = nil; err == nil {
			suspects.judge(look, &plan.Base)
			state.Damaged = look.Found()
			return state, nil
		}
		kept = state
		var object *objectError
		if !errors.As(err, &object) || ctx.Err() != nil {
			return nil, errors.Join(append(look.Found(), err)...)
		}
		without := object.without
		copies.wanted = copies.wanted || kept == nil && without != plan.Base.Hash
		if Later(err) { // of a later build, unless others have the same entries
			if suspects.add(look, &plan.Base, without, &fetch.DamageError{Name: object.name, Err: err}) {
				continue
			}
			return nil, errors.Join(append(look.Found(), err)...)
		}
		if errors.Is(err, ErrDiffers) && !blamed[without] {
			if suspects.add(look, &plan.Base, without, err) {
				continue
			}
			blamed[without] = true // the base may be the cause: an older one decides
			suspects.clear(look)
			without, err = plan.Base.Hash, ofBase(&plan.Base, err)
		}
		if link, found := plan.LinkOf(without); found && errors.Is(err, ErrOtherHistory) {
			if err := look.Parted(ctx, &link); err != nil { // it is a good one, and does not continue that
				return nil, err
			}
			continue
		}
		look.Leave(without, err)
	}
}

// suspect is a segment whose entries did not have the cluster's sums on a base, while others have the same entries: the base is
// tried without the segment first. Somebody who can write to the place may have put it.
type suspect struct {
	base, segment backup.Hash
	err           error
	cleared       bool
}

type suspects []suspect

// add leaves a segment out; false: it was left out for this base before, or nothing else leads on from that to the target.
func (all *suspects) add(look *history.Search, base *backup.Base, segment backup.Hash, err error) bool {
	for _, one := range *all {
		if one.base == base.Hash && one.segment == segment {
			return false
		}
	}
	if !look.Suspect(base, segment) {
		return false
	}
	*all = append(*all, suspect{base: base.Hash, segment: segment, err: err})
	return true
}

// judge takes the suspects into the search as damaged: the base led to the target without them.
func (all suspects) judge(look *history.Search, base *backup.Base) {
	for _, one := range all {
		if one.base == base.Hash && !one.cleared {
			look.Leave(one.segment, one.err)
		}
	}
}

// clear takes the suspects back, if there are any.
func (all suspects) clear(look *history.Search) (any bool) {
	for i := range all {
		if one := &all[i]; !one.cleared {
			look.Clear(one.segment)
			one.cleared, any = true, true
		}
	}
	return any
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
	case errors.Is(err, backup.ErrLater), errors.Is(err, backup.ErrSealed), errors.Is(err, backup.ErrRecipients),
		TooLarge(err):
		return fmt.Errorf("object %s: %w", name, err)
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

// TooLarge reports whether an error says that there was too little memory to read an object.
func TooLarge(err error) bool {
	large := (*backup.TooLargeError)(nil)
	return errors.As(err, &large)
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
		return fmt.Errorf("object %s: %w", name, &level.TooLowError{Own: own, Active: m.Level})
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

// errClaims means that a segment claims to lead to a state that the replay of others has, by another way.
var errClaims = errors.New("it claims to lead to a state to which other entries lead")

// next returns the next plan of a search. Where only one history may be restored, and segments at the place do not agree about
// the state with which the plan ends, the plan's line is replayed first, to where those end: names and sums of segments are
// claims. kept is closed then.
func next(ctx context.Context, copies *copies, look *history.Search, kept **State) (*backup.Plan, error) {
	for {
		plan, err := look.Plan(ctx)
		if err != nil || !copies.OneHistory {
			return plan, err
		}
		rivals, again, err := look.Rivals(ctx, plan)
		if err == nil && !again && len(rivals) == 0 {
			return plan, nil
		}
		if err == nil && !again {
			if state := *kept; state != nil {
				*kept, err = nil, state.Close()
			}
			if err == nil {
				copies.wanted = true
				err = decide(ctx, copies, look, plan, rivals)
			}
		}
		if err != nil {
			return nil, errors.Join(append(look.Found(), err)...)
		}
	}
}

// decide finds out by a replay whether the line of a plan or its rivals are to be believed, and leaves the others out of the
// search. A backup.HistoriesError says that this cannot be told: the line leads to other states than its rivals.
func decide(
	ctx context.Context, copies *copies, look *history.Search, plan *backup.Plan, rivals []history.Rival,
) error {
	until := plan.End.Index
	for i := range rivals {
		until = max(until, rivals[i].Segment.End.Index)
	}
	line := plan.Further(until)
	state, err := run(ctx, copies, line, nil)
	if state != nil {
		if closing := state.Close(); closing != nil {
			return errors.Join(err, closing)
		}
	}
	object := (*objectError)(nil)
	switch {
	case err == nil:
	case !errors.As(err, &object) || Later(err) || ctx.Err() != nil:
		return err
	default:
		if link, found := line.LinkOf(object.without); found && errors.Is(err, ErrOtherHistory) {
			return look.Parted(ctx, &link)
		}
		look.Leave(object.without, err)
		return nil
	}
	left := false
	for i := range rivals {
		agrees, err := look.Agrees(ctx, line, &rivals[i])
		if err != nil {
			return err
		}
		if name := rivals[i].Segment; agrees {
			left = true
			look.Leave(name.Hash, &fetch.DamageError{Name: name.String(), Err: errClaims})
		}
	}
	if left {
		return nil
	}
	return &backup.HistoriesError{Target: plan.Target,
		Ends: []backup.Head{plan.Segments[len(plan.Segments)-1].Head(), rivals[0].Segment.Head()}}
}
