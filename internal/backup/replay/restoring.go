package replay

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/history"
)

// Run restores the target. If objects are damaged it tries other plans for the same target; the error then says all that was
// found. A backup.UnreachableError is in it if no plan is left.
func Run(ctx context.Context, o Options, c *backup.Catalog, target backup.Target) (result *State, err error) {
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	r := &restoring{ctx: ctx, Options: &o, blamed: map[backup.Hash]bool{}}
	r.look = &history.Search{Store: o.Store, Open: o.Open, Catalog: c, Target: target, ObjectBytes: o.ObjectBytes,
		OneHistory: o.OneHistory, Damaged: o.Damaged}
	r.copies = &copies{Options: &o, catalog: c}
	if err := r.copies.remove(); err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, r.drop(), r.copies.drop()); err != nil && result != nil {
			result, err = nil, errors.Join(err, result.Close())
		}
	}()
	for {
		plan, err := r.next()
		if err != nil && r.suspects.clear(r.look) {
			continue // they may be what is needed
		}
		if err != nil {
			return nil, err
		}
		if state, err := r.follow(plan); state != nil || err != nil {
			return state, err
		}
	}
}

// restoring is a Run under way.
type restoring struct {
	*Options
	ctx      context.Context
	look     *history.Search
	copies   *copies
	suspects suspects
	blamed   map[backup.Hash]bool // segments for which a base was left out
	kept     *State               // of a plan that ended at an object that could not be read; nil: there is none
	// undecided is the error of a dispute that an older base may decide; nil: there was none.
	undecided error
}

// drop closes the state that is kept.
func (r *restoring) drop() (err error) {
	if r.kept != nil {
		err = r.kept.Close()
	}
	r.kept = nil
	return err
}

// failed is an error with all damage that was found before it.
func (r *restoring) failed(err error) error { return errors.Join(append(r.look.Found(), err)...) }

// follow restores by a plan. Without a result another plan is to be tried.
func (r *restoring) follow(plan *backup.Plan) (*State, error) {
	if r.kept != nil {
		if _, through := r.kept.rest(plan); !through {
			r.copies.wanted = true
			if err := r.drop(); err != nil {
				return nil, err
			}
		}
	}
	state, err := run(r.ctx, r.copies, plan, r.kept)
	if r.kept = nil; err == nil {
		r.suspects.judge(r.look, &plan.Base)
		state.Damaged = r.look.Found()
		return state, nil
	}
	r.kept = state
	return nil, r.blame(plan, err)
}

// blame finds out what a plan must do without that a replay of it could not go through. The error ends the restore.
func (r *restoring) blame(plan *backup.Plan, err error) error {
	var object *objectError
	if !errors.As(err, &object) || r.ctx.Err() != nil {
		return r.failed(err)
	}
	without := object.without
	r.copies.wanted = r.copies.wanted || r.kept == nil && without != plan.Base.Hash
	if history.Hidden(err) {
		r.look.Hide(without, err)
		return nil
	}
	if Later(err) { // of a later build, unless others have the same entries
		if !r.suspects.add(r.look, &plan.Base, without, &fetch.DamageError{Name: object.name, Err: err}) {
			r.look.Hide(without, err) // another base may lead to the target without it
			r.look.Doubt(plan.Base.Hash)
		}
		return nil
	}
	if link, found := plan.LinkOf(without); found && errors.Is(err, ErrOtherHistory) {
		return r.look.Parted(r.ctx, &link) // it is a good one, and does not continue that
	}
	if !errors.Is(err, ErrDiffers) {
		r.look.Leave(without, err)
		return nil
	}
	switch {
	case r.blamed[without]:
		r.look.Blame(without, err)
	case !r.suspects.add(r.look, &plan.Base, without, err):
		r.blamed[without] = true // the base may be the cause: an older one decides
		r.suspects.clear(r.look)
		r.look.Leave(plan.Base.Hash, ofBase(&plan.Base, err))
	}
	return nil
}

// errClaims means that a segment claims to lead to a state that the replay of others has, by another way.
var errClaims = errors.New("it claims to lead to a state to which other entries lead")

// next returns the next plan. Segments that lead where its own do have the same entries (contest). Where only one history may
// be restored, and segments at the place do not agree about the state with which the plan ends, the plan's line is replayed
// first, to where those end: names and sums of segments are claims.
func (r *restoring) next() (*backup.Plan, error) {
	for {
		plan, err := r.look.Plan(r.ctx)
		if err != nil && r.undecided != nil && r.ctx.Err() == nil {
			return nil, r.failed(r.undecided)
		}
		if err != nil {
			return nil, err
		}
		twin, again, err := r.look.Twins(r.ctx, plan)
		if err == nil && twin != nil {
			err = r.contest(plan, twin)
		}
		if err != nil {
			return nil, r.failed(err)
		}
		if twin != nil || again {
			continue
		}
		if !r.OneHistory {
			return plan, nil
		}
		rivals, again, err := r.look.Rivals(r.ctx, plan)
		if err == nil && !again && len(rivals) == 0 {
			return plan, nil
		}
		if err == nil && !again {
			if err = r.drop(); err == nil {
				r.copies.wanted = true
				err = r.decide(plan, rivals)
			}
		}
		if err != nil {
			return nil, r.failed(err)
		}
	}
}

// contest finds out by replays whether a plan's segments or a twin of them have entries that are not the cluster's, and leaves
// those out of the search. If both apply the error has a TwinsError.
func (r *restoring) contest(plan *backup.Plan, twin *history.Twin) error {
	if err := r.drop(); err != nil {
		return err
	}
	r.copies.wanted = true
	before := plan.Further(twin.After)
	other := *before
	other.Target, other.Segments = backup.Target{Index: twin.Until}, nil
	for _, s := range twin.Chain {
		other.Segments = append(other.Segments, *s)
	}
	if applies, err := r.applies(before, &other); !applies || err != nil {
		return err
	}
	if applies, err := r.applies(plan.Further(twin.Until), nil); !applies || err != nil {
		return err
	}
	two := &TwinsError{twin.Of.String(), twin.Chain[0].String(), twin.Differ, twin.Until}
	return &fetch.DamageError{Name: two.Name, Err: two}
}

// applies reports whether a plan can be followed, and then the segments of another one from its state, if that is not nil. If
// not, what is to be blamed is left out of the search.
func (r *restoring) applies(plan, then *backup.Plan) (applies bool, err error) {
	state, err := run(r.ctx, r.copies, plan, nil)
	if err == nil && then != nil {
		plan = then
		err = (&replaying{Options: r.Options, ctx: r.ctx, plan: then, state: state}).log()
	}
	if state != nil {
		if ended := state.Close(); ended != nil {
			return false, errors.Join(err, ended)
		}
	}
	if err != nil {
		return false, r.blame(plan, err)
	}
	return true, nil
}

// How far behind its rivals a line is replayed at most where these do not tell which one is right: in entries, and in bytes of
// segments. An entry that meets what a base has otherwise shows it.
const (
	behindRivals      = 1 << 16
	behindRivalsBytes = 64 << 20
)

// decide finds out by a replay whether the line of a plan or its rivals are to be believed, and leaves the others out of the
// search. A backup.HistoriesError says that this cannot be told: the line leads to other states than its rivals. Where a rival
// was blamed by a replay the base may be what is wrong: the line is replayed further, and if that does not tell an older base
// decides.
func (r *restoring) decide(plan *backup.Plan, rivals []history.Rival) (err error) {
	until, doubted := plan.End.Index, false
	for i := range rivals {
		until = max(until, rivals[i].Segment.End.Index)
		doubted = doubted || r.look.Blamed(rivals[i].Segment.Hash)
	}
	line := plan.Further(until)
	state, err := run(r.ctx, r.copies, line, nil)
	defer func() {
		if state != nil {
			err = errors.Join(err, state.Close())
		}
	}()
	if err != nil {
		return r.blame(line, err)
	}
	left, err := r.leave(rivals, func(rival *history.Rival) (bool, error) { return r.look.Agrees(r.ctx, line, rival) })
	if left || err != nil {
		return err
	}
	two := &backup.HistoriesError{Target: plan.Target,
		Ends: []backup.Head{plan.Segments[len(plan.Segments)-1].Head(), rivals[0].Segment.Head()}}
	if !doubted {
		return two
	}
	line = plan.Further(plan.Behind(until, behindRivals, behindRivalsBytes))
	if state, err = run(r.ctx, r.copies, line, state); err != nil {
		return r.blame(line, err)
	}
	left, err = r.leave(rivals, func(rival *history.Rival) (bool, error) {
		return plan.Lives() && r.look.Blamed(rival.Segment.Hash), nil
	})
	if left || err != nil {
		return err
	}
	r.undecided = two
	r.suspects.clear(r.look)
	r.look.Doubt(plan.Base.Hash)
	return nil
}

// leave leaves the rivals out of the search that are disproved, and reports whether there were some.
func (r *restoring) leave(rivals []history.Rival, disproved func(*history.Rival) (bool, error)) (left bool, err error) {
	for i := range rivals {
		name := rivals[i].Segment
		wrong, err := disproved(&rivals[i])
		if err != nil {
			return false, err
		}
		if wrong {
			left = true
			r.suspects.settled(name.Hash)
			r.look.Leave(name.Hash, &fetch.DamageError{Name: name.String(), Err: errClaims})
		}
	}
	return left, nil
}
