package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Options say where a backup is, and what a proof may take.
type Options struct {
	Store      objects.Store
	FS         env.FS
	Dir        string // for the stores; it is removed first, and at the end
	OpenEngine func(dir string) (engine.Engine, error)
	Apply      apply.Options
	Parallel   int // objects that are read at once; zero: replay.DefaultParallel
	// After is the hash of the last base that was proven before: those after it are proven now, and all others of its entry. If
	// the place does not have it any more all bases are; if it is zero the newest one is, by the one before it.
	After backup.Hash
	// Known reports whether a member of the cluster made the base with a hash: no other one is looked at, since a store that
	// somebody else made is none to open inside a member. Nil: all are.
	Known func(backup.Hash) bool
	// Lacks reports whether members said that the backup lacks an entry, as one of a gap. Nil: none did.
	Lacks func(consensus.Index) bool
	// Noted returns a note of a gap in which an entry lies that is missing. Nil: the catalog has all notes.
	Noted func(context.Context, consensus.Index) (*backup.GapName, error)
	// ObjectBytes bounds the memory in which a manifest or a segment is read; zero: what their forms allow.
	ObjectBytes int64
	// Rest is called now and then. It may wait; its error ends the proof.
	Rest func() error
	// Room is called before a base is downloaded, with the bytes that its store and those of the log after it may take.
	Room func(bytes int64) error
}

// Run proves the newest state of a catalog. The error says why a restore does not have it, with all objects that were found to
// be damaged: if Verdict is true of it the backup is the cause.
func Run(ctx context.Context, o Options, c *backup.Catalog) (*Proof, error) {
	return begin(ctx, &o, c, nil, (*run).whole)
}

// Log returns the segments that lead from a base to the next one, sorted as those of a catalog. It is short if it leaves some
// out for a bound.
type Log func(from, to *backup.Base) (segments []backup.Stored, short bool, err error)

// Compare compares the bases of a catalog, each with what the log makes of the one before it, and holds the log between two of
// them only. The first one is believed. The catalog has no segments. The proof has no state; an error is as that of Run.
func Compare(ctx context.Context, o Options, c *backup.Catalog, log Log) (*Proof, error) {
	return begin(ctx, &o, c, log, func(r *run) error {
		if len(r.catalog.Bases) == 0 {
			return nil
		}
		err := r.compare(r.catalog.Bases)
		if err == nil && r.differs {
			err = errors.Join(r.proof.Damaged...)
		}
		return err
	})
}

// begin begins a run, and ends it whatever it returns.
func begin(ctx context.Context, o *Options, c *backup.Catalog, log Log, do func(*run) error) (_ *Proof, err error) {
	if err := o.FS.RemoveAll(o.Dir); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Options: o, ctx: ctx, cancel: cancel, catalog: c, log: log, proof: &Proof{}, passes: true}
	r.leaveOut()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause // what the end of the proof broke is no finding
		}
		err = errors.Join(err, r.drop(), o.FS.RemoveAll(o.Dir))
	}()
	if err := do(r); err != nil {
		return nil, err
	}
	return r.proof, r.drop()
}

// whole compares the bases, and restores the newest state.
func (r *run) whole() error {
	bases, err := r.bases()
	if err != nil {
		return r.andUnknown(err)
	}
	if err := r.compare(bases); err != nil {
		return err
	}
	err = r.newest()
	if err == nil && !r.differs {
		r.proof.Since = r.state.Machine.Chain().Since
		return nil
	}
	return r.andUnknown(errors.Join(append(r.proof.Damaged, err)...))
}

// leaveOut leaves bases that are not known out of the catalog. Those before the first one that is known are not counted: the
// cluster has forgotten whose they are. Those before the last base that was proven were counted then.
func (r *run) leaveOut() {
	if r.Known == nil {
		return
	}
	own := *r.catalog
	own.Bases = nil
	unknown := 0
	for i := range r.catalog.Bases {
		switch b := &r.catalog.Bases[i]; {
		case !r.Known(b.Hash):
			unknown++
		case len(own.Bases) == 0, b.Hash == r.After:
			unknown = 0
			fallthrough
		default:
			own.Bases = append(own.Bases, *b)
		}
	}
	r.catalog, r.proof.Unknown = &own, unknown
}

// andUnknown says of a verdict that bases were left out.
func (r *run) andUnknown(err error) error {
	if r.proof.Unknown == 0 || !Verdict(err) {
		return err
	}
	return errors.Join(&UnknownError{r.proof.Unknown}, err)
}

// run is a proof under way.
type run struct {
	*Options
	ctx     context.Context
	cancel  context.CancelCauseFunc
	catalog *backup.Catalog
	log     Log // nil: the catalog has all of it
	proof   *Proof
	differs bool // a base has other contents
	first   bool // no base was proven before
	passes  bool // no base was left out so far
	told    bool // why the log does not lead to the base that is looked at: a note, or damage
	doubted bool // the base at which the log that is looked at begins is of another state than the log before it

	notes []backup.GapName // that explain holes

	state  *opened // nil: none is open
	stores int     // that were opened so far: each has its directory
}

// opened is a state with the directory of its store.
type opened struct {
	*replay.State
	dir string
}

// without says that all objects are to be tried.
func without(backup.Hash) bool { return false }

// bases are those to prove, with the one before them. Those of the entry of Options.After follow it, whatever the times in
// their names: another member may have made one since the last proof.
func (r *run) bases() ([]backup.Base, error) {
	plan, err := r.catalog.Plan(backup.Target{}, without)
	if err != nil {
		return nil, err
	}
	var before, twins []backup.Base
	after := (*backup.Base)(nil) // the last one that was proven
	for i := range r.catalog.Bases {
		b := &r.catalog.Bases[i]
		if b.Hash == r.After && b.Index <= plan.Base.Index {
			after = b
		}
		switch {
		case b.Index > plan.Base.Index: // nothing leads on from it
			r.proof.Apart++
		case b.Hash == plan.Base.Hash:
		case b.Index == plan.Base.Index: // another member made it
			twins = append(twins, *b)
		default:
			before = append(before, *b)
		}
	}
	if after == nil && r.After == (backup.Hash{}) {
		r.first, before = true, before[max(len(before)-1, 0):]
	}
	bases := append(append(before, twins...), plan.Base)
	if after != nil {
		bases = slices.DeleteFunc(bases, func(b backup.Base) bool { return b.Index < after.Index || b.Hash == r.After })
		bases = slices.Insert(bases, 0, *after)
	}
	return bases, nil
}

// compare compares each base with the replay from the one before it. At its end r.state, if there is one, is that of the last
// base. The error ends the proof; damage does not.
func (r *run) compare(bases []backup.Base) error {
	r.proof.Base = bases[0]
	for i := 1; i < len(bases); i++ {
		short, err := r.lists(&bases[i-1], &bases[i])
		if err == nil {
			short, err = r.reach(&bases[i-1], &bases[i], short)
		}
		if err != nil {
			return err
		}
		if r.state == nil {
			if short || r.catalog.Cut && !r.told {
				r.proof.Left++
				r.passes = false
			}
			r.passed(&bases[i])
			continue // a gap, another history, or damage: the next base begins anew
		}
		own, err := r.restore(&bases[i], backup.Target{Index: bases[i].Index})
		if err != nil {
			if err = r.taken(err); err != nil {
				return err
			}
			r.passes = false
			continue
		}
		same, err := r.same(own)
		if err != nil {
			return errors.Join(err, r.close(own))
		}
		r.proof.Bases++
		if !same { // the replay goes on
			r.differs = true
			r.proof.Add(&fetch.DamageError{Name: bases[i].String(), Err: ErrContents})
			if err := r.close(own); err != nil {
				return err
			}
			continue
		}
		if err := r.drop(); err != nil {
			return errors.Join(err, r.close(own))
		}
		r.state = own
		r.passed(&bases[i])
	}
	return nil
}

// lists makes the log between two bases that of the catalog.
func (r *run) lists(from, to *backup.Base) (short bool, err error) {
	if r.log == nil {
		return false, nil
	}
	own := *r.catalog
	own.Segments = nil // before there are others: there is memory for those between two bases
	r.catalog = &own
	own.Segments, short, err = r.log(from, to)
	return short, err
}

// passed makes a base the one at which the next proof begins, unless one before it was left out: damage is named again.
func (r *run) passed(base *backup.Base) {
	if r.passes {
		r.proof.Base = *base
	}
}

// noted returns a note of a gap in which an entry lies.
func (r *run) noted(index consensus.Index) (*backup.GapName, error) {
	if r.Noted != nil {
		return r.Noted(r.ctx, index)
	}
	for i := range r.catalog.Gaps {
		if g := &r.catalog.Gaps[i]; g.After < index && index < g.Until {
			return g, nil
		}
	}
	return nil, nil
}

// removed reports whether the log that is missing is known to be: by the word of members, by the note of a gap, or by that of
// what retention removed.
func (r *run) removed(e *backup.UnreachableError) (bool, error) {
	if r.Lacks != nil && r.Lacks(e.Breaks) {
		return true, nil
	}
	g, err := r.noted(e.Breaks)
	if g != nil && !slices.Contains(r.notes, *g) {
		r.notes = append(r.notes, *g)
		r.proof.Holes = len(r.notes)
	}
	return g != nil || r.catalog.Kept != nil && e.Breaks <= r.catalog.Kept.Floor, err
}

// reach makes r.state that of the log at a base, by a replay from the one before it, or nil if none leads there. short says
// that some of the log was left out, and left that more of it was.
func (r *run) reach(from, to *backup.Base, short bool) (left bool, err error) {
	target := backup.Target{Index: to.Index}
	if r.state == nil {
		r.state, err = r.restore(from, target)
	} else if err = r.extend(target); damaged(err) || errors.Is(err, replay.ErrUndecided) {
		if left, err = r.anew(from, target, err); left {
			return true, err
		}
	}
	if err == nil {
		r.proof.Add(errors.Join(r.state.Damaged...))
	}
	r.told = from.Epoch != to.Epoch
	whole := !short && !r.catalog.Cut && from.Epoch == to.Epoch // else a part is left out, or was lost by a recovery
	switch unreachable := (*backup.UnreachableError)(nil); {
	case err == nil && r.state.At.Point == to.Point:
		r.doubted = false
		return short, nil
	case err == nil: // another history: after a recovery the log went on elsewhere
		r.passes = r.passes && (r.first || from.Epoch != to.Epoch)
		if r.doubted = whole; whole {
			r.proof.Apart++
		}
	case errors.As(err, &unreachable) && !damaged(err) && Verdict(err): // a gap
		removed := false
		removed, err = r.removed(unreachable)
		r.told = r.told || removed
		r.passes = r.passes && (r.first || removed)
		switch {
		case err != nil: // the place was away
		case !whole || removed:
		case r.doubted:
			r.proof.Apart++
		default:
			r.proof.Add(&LostError{unreachable.Breaks, to})
		}
		r.doubted = false
	default:
		r.told = true
		r.passes, err = false, r.taken(err)
	}
	return short, errors.Join(err, r.drop())
}

// anew restores what r.state could not be extended to: that tries other objects, and finds which one is damaged. It begins with
// the base of r.state: the one before the target may differ. left is true if the log from there is not in memory.
func (r *run) anew(from *backup.Base, target backup.Target, why error) (left bool, err error) {
	base := r.state.Plan.Base
	if err := r.drop(); err != nil {
		return false, err
	}
	if r.log == nil || base.Hash == from.Hash {
		r.state, err = r.restore(&base, target)
		return false, err
	}
	r.doubted = false
	if damaged(why) {
		err = r.taken(why)
	}
	return true, err
}

// taken takes an error about an object into the proof, and returns any other one.
func (r *run) taken(err error) error {
	if err == nil || r.ctx.Err() != nil || !Verdict(err) {
		return err
	}
	r.proof.Add(err)
	return nil
}

// newest restores the newest state: from the last base, or by whatever else leads there.
func (r *run) newest() error {
	if r.state != nil {
		err := r.extend(backup.Target{})
		if err == nil {
			r.proof.At = r.state.At
			return nil
		}
		if errors.Is(err, replay.ErrUndecided) { // a restore finds out
			err = nil
		}
		if err = errors.Join(r.taken(err), r.drop()); err != nil {
			return err
		}
	}
	state, err := r.replay(r.catalog, backup.Target{})
	if err != nil {
		return err
	}
	r.state, r.proof.At = state, state.At
	r.proof.Add(errors.Join(state.Damaged...))
	return nil
}

// same reports whether a state has the same contents as r.state.
func (r *run) same(own *opened) (bool, error) {
	x, err := r.state.Machine.Contents(r.rest)
	if err != nil {
		return false, err
	}
	y, err := own.Machine.Contents(r.rest)
	return x == y, err
}

// rest rests. An error of Rest ends all that is under way.
func (r *run) rest() error {
	if r.Rest != nil && r.ctx.Err() == nil {
		if err := r.Rest(); err != nil {
			r.cancel(err)
		}
	}
	return context.Cause(r.ctx)
}

// restore restores a target from a base and from no other one.
func (r *run) restore(base *backup.Base, target backup.Target) (*opened, error) {
	only := &backup.Catalog{Cluster: r.catalog.Cluster, Bases: []backup.Base{*base}, Segments: r.catalog.Segments}
	return r.replay(only, target)
}

func (r *run) replay(c *backup.Catalog, target backup.Target) (*opened, error) {
	if r.Room != nil {
		bytes, err := r.needs(c, target)
		if err == nil {
			err = r.Room(bytes)
		}
		if err != nil {
			return nil, err
		}
	}
	r.stores++
	dir := r.FS.PathJoin(r.Dir, strconv.Itoa(r.stores))
	state, err := replay.Run(r.ctx, r.options(dir), c, target)
	if room := (*backup.RoomError)(nil); errors.As(err, &room) {
		return nil, room.Err // it says nothing of the backup
	}
	if err != nil {
		return nil, err
	}
	return &opened{state, dir}, nil
}

// unpacked is how many times the bytes of packed segments a store may grow by.
const unpacked = 4

// needs is the room that a restore may take: that of its base, and of the log.
func (r *run) needs(c *backup.Catalog, target backup.Target) (bytes int64, err error) {
	plan, err := c.Plan(target, without)
	if err != nil {
		return 0, err
	}
	bytes = unpacked * plan.LogBytes()
	m, err := replay.ManifestOf(r.ctx, r.Store, &plan.Base, nil, r.ObjectBytes)
	switch {
	case err == nil:
		bytes += m.SizeBytes()
	case damaged(err), errors.Is(err, backup.ErrDamaged):
		err = nil // the restore says so
	default:
		err = fmt.Errorf("object %v: %w", &plan.Base, err)
	}
	return bytes, err
}

func (r *run) options(dir string) replay.Options {
	return replay.Options{Store: r.Store, FS: r.FS, Dir: dir, OpenEngine: r.OpenEngine, Apply: r.Apply, Parallel: r.Parallel,
		ObjectBytes: r.ObjectBytes, Room: r.Room,
		Progress: func(replay.Progress) { _ = r.rest() }} // a replay sees the end of its context by itself
}

// extend applies the log to r.state, up to a target.
func (r *run) extend(target backup.Target) error {
	return r.state.Extend(r.ctx, r.options(r.state.dir), r.catalog, target)
}

// drop closes r.state and removes its store.
func (r *run) drop() error {
	state := r.state
	r.state = nil
	return r.close(state)
}

func (r *run) close(state *opened) error {
	if state == nil {
		return nil
	}
	r.proof.Entries += state.Entries
	return errors.Join(state.Close(), r.FS.RemoveAll(state.dir))
}
