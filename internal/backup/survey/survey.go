package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/attempt"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/objects"
)

// mostRounds bounds how often bases are compared before the list of the end has the last one of them: the cluster ships on.
const mostRounds = 4

// NameTimes is how many times the bytes of a list of names a proof holds: plans, and what finds them, are made of it.
const NameTimes = 4

// EnoughNameBytes is what Options.NameBytes needs for the names between two bases, and those after the newest one.
const EnoughNameBytes = NameTimes * fetch.LeastNameBytes

// Part runs a part of a proof. Options has all but the last base that was proven, which bases are known, and ObjectBytes.
type Part func(ctx context.Context, run func(context.Context, prove.Options) (*prove.Proof, error)) (*prove.Proof, error)

// Options are what a Survey works on.
type Options struct {
	Store   objects.Store
	Cluster consensus.ClusterID
	Epoch   uint64      // of the cluster
	Op      *attempt.Op // that the look is for
	// Row returns the row of the backup as it is now.
	Row func() *kv.BackupRow
	// ObjectBytes is the memory for reading a manifest or a segment, one at a time; zero: what their forms allow.
	ObjectBytes int64
	// NameBytes is the memory for the names of the objects at the place, and for what is made of them; zero: EnoughNameBytes.
	NameBytes int64
	Part      Part
	Faults    Faults
}

// Faults make a Survey wrong on purpose, for the simulator's negative controls.
type Faults struct {
	Skips bool // bases before those in the list count as compared
	Apart bool // bases that were compared count as ones of another state
}

// Survey is one look at a place.
type Survey struct {
	Options
	next   func(context.Context) error // nil: it is over
	round  int
	list   listing
	window fetch.Window
	first  error // what kept the state that was reported from being proven by what leads to it
	large  error // a segment was left out that is larger than there is memory for; nil: none was
	end    backup.Point
	proof  *prove.Proof // the result, once next is nil
	err    error
}

// New returns a Survey.
func New(o Options) *Survey {
	s := &Survey{Options: o, list: listing{after: o.Op.After()}}
	s.end = backup.Point{Index: consensus.Index(o.Op.Row.Progress.Restorable.Index), Sum: o.Op.Row.Progress.Sum}
	s.next = s.look
	return s
}

// Step does the next step, and reports whether there is another one.
func (s *Survey) Step(ctx context.Context) (more bool) {
	step := s.next
	s.next = nil
	if err := step(ctx); err != nil {
		s.next, s.proof, s.err = nil, nil, err
	}
	return s.next != nil
}

// Result is the proof, once no step is left, or an error as that of prove.Run.
func (s *Survey) Result() (*prove.Proof, error) { return s.proof, s.err }

// Listed is what was listed last of the end of the history; nil: nothing was yet.
func (s *Survey) Listed() *backup.Catalog { return s.list.catalog }

// ErrCut is why a backup could not be proven of which a part was not looked at. Nothing that was found wrong is a verdict then.
var ErrCut = errors.New("the place has more segments after the bases than a member lists: the next base makes them " +
	"fewer, and `quorate backup verify` lists all")

// look lists the end of the history.
func (s *Survey) look(ctx context.Context) (err error) {
	s.round++
	l := &s.list
	l.catalog = nil // there is memory for one
	s.window = fetch.Window{Cluster: s.Cluster, Epoch: s.Epoch, Most: s.Op.Most(), From: l.after, Known: s.Op.Known,
		Memory: s.NameBytes / NameTimes}
	if l.catalog, err = fetch.Recent(ctx, s.Store, s.window); err != nil {
		return err
	}
	bound(l.catalog, s.Op.Known)
	switch {
	case l.catalog.Cut && len(l.catalog.Bases) == 0:
		return fmt.Errorf("%w (this member listed %d, for more raise its --memory)", ErrCut, len(l.catalog.Segments))
	case l.after == (backup.Hash{}) || hasBase(l.catalog, l.after):
		s.next = s.proveReported
	default:
		s.next = s.compare
	}
	return nil
}

// compare compares the bases from the last one that was proven up to the first one in the list, with the log between each two
// of them in memory. Then the place is listed again.
func (s *Survey) compare(ctx context.Context) error {
	l := &s.list
	marks, err := fetch.Marks(ctx, s.Store, s.window)
	if err != nil {
		return err
	}
	bound(marks, s.Op.Known)
	between(marks, l, s.Op.Known)
	n := len(marks.Bases)
	if n < 2 {
		s.next = s.proveReported
		return nil
	}
	last := marks.Bases[n-1].Hash
	if s.round > mostRounds {
		l.add(&prove.Proof{Base: marks.Bases[0], Left: n - 1}, last)
		s.next = s.proveReported
		return nil
	}
	l.catalog = nil
	if s.Faults.Skips {
		marks.Bases = marks.Bases[n-1:]
	}
	found, err := s.Part(ctx, func(ctx context.Context, o prove.Options) (*prove.Proof, error) {
		return prove.Compare(ctx, s.options(o, s.Op.After()), marks, s.log(ctx))
	})
	if err != nil {
		return s.settles(nil, err)
	}
	l.add(found, last)
	s.next = s.look
	return nil
}

// log lists the log between two bases.
func (s *Survey) log(ctx context.Context) prove.Log {
	var before *backup.Base
	return func(from, to *backup.Base) (segments []backup.Stored, short bool, err error) {
		segments, short, err = fetch.Between(ctx, s.Store, before, from, to, s.NameBytes/NameTimes)
		before = from
		segments, large := s.fitting(segments)
		return segments, short || large != nil, err
	}
}

// proveReported proves what of the list leads to the state that was reported.
func (s *Survey) proveReported(ctx context.Context) error {
	own := s.list.catalog
	if s.end.Sum != 0 {
		leading, err := own.LeadingTo(s.end)
		if err != nil { // nothing ends with it
			s.end.Sum = 0
			return s.proveReported(ctx)
		}
		own = leading
	}
	proof, err := s.prove(ctx, own)
	if s.end.Sum != 0 && err != nil && prove.Verdict(err) {
		s.first, s.next = err, s.proveAny
		return nil
	}
	return s.ended(proof, err)
}

// proveAny proves the newest state of all that is listed: what leads to the state that was reported is damaged, or gone, and
// the rest may replace it.
func (s *Survey) proveAny(ctx context.Context) error {
	proof, err := s.prove(ctx, s.list.catalog)
	switch {
	case err != nil && !prove.Verdict(err):
	case err != nil || proof.At.Point != s.end:
		proof, err = nil, s.first // it names what is damaged of the reported state
	case !slices.ContainsFunc(proof.Damaged, func(d error) bool { return strings.Contains(s.first.Error(), d.Error()) }):
		proof.Add(s.first)
	}
	return s.ended(proof, err)
}

// ended ends the look. A part that was left out may be the cause of what was found to be wrong.
func (s *Survey) ended(proof *prove.Proof, err error) error {
	reported := consensus.Index(s.Op.Row.Progress.Restorable.Index)
	wrong := prove.Verdict(err) || err == nil && proof.At.Index < reported
	switch {
	case wrong && s.large != nil:
		return s.large
	case wrong && s.list.catalog.Cut:
		return fmt.Errorf("%w (%v)", ErrCut, err) // err is no cause: it would be a verdict
	case err != nil:
		return s.settles(nil, errors.Join(append(s.list.before.Damaged, err)...))
	}
	if s.Faults.Apart {
		proof.Apart, proof.Bases = proof.Bases, 0
	}
	return s.settles(s.list.complete(proof), nil)
}

// settles ends the look, after another one at what retention has removed meanwhile if anything is found to be missing.
func (s *Survey) settles(proof *prove.Proof, err error) error {
	switch {
	case err != nil && !prove.Verdict(err):
		return err
	case err == nil && len(proof.Damaged) == 0:
		s.proof = proof
		return nil
	}
	s.proof, s.err, s.next = proof, err, s.settle
	return nil
}

// settle leaves out what is missing because retention removed it, by its last note: a proof may take longer than what it reads
// is kept.
func (s *Survey) settle(ctx context.Context) error {
	now, w := &attempt.Op{Row: s.Row()}, s.window
	w.Most, w.Known = now.Most(), now.Known // notes are of later entries than there were when the look began
	marks, err := fetch.Marks(ctx, s.Store, w)
	if err != nil {
		return err
	}
	if marks.Kept == nil {
		return s.err
	}
	bound(marks, now.Known)
	removed := func(part error) bool { return removedBelow(part, marks.Kept.Floor) }
	if s.err != nil {
		if slices.ContainsFunc(fetch.Parts(s.err), removed) { // the text is no cause: it would be a verdict
			return fmt.Errorf("retention removed what was read: this member was too slow, or the rule keeps too little (%v)",
				s.err)
		}
		return s.err
	}
	s.proof.Damaged = slices.DeleteFunc(s.proof.Damaged, removed)
	return nil
}

// removedBelow reports whether an error tells that something is missing which retention removes if it keeps the log from an
// entry on.
func removedBelow(err error, floor consensus.Index) bool {
	damage, lost, unreachable := (*fetch.DamageError)(nil), (*prove.LostError)(nil), (*backup.UnreachableError)(nil)
	switch {
	case errors.As(err, &lost):
		return lost.First <= floor
	case errors.As(err, &damage):
		if !errors.Is(damage, objects.ErrNotFound) {
			return false
		}
		if n, err := backup.ParseSegment(damage.Name); err == nil {
			return n.End.Index <= floor
		}
		n, err := backup.ParseBase(cmp.Or(damage.Of, damage.Name))
		return err == nil && n.Index < floor
	case errors.As(err, &unreachable):
		return unreachable.Breaks > 0 && unreachable.Breaks <= floor
	}
	return false
}

// prove proves a catalog.
func (s *Survey) prove(ctx context.Context, c *backup.Catalog) (*prove.Proof, error) {
	if fitting, large := s.fitting(c.Segments); large != nil {
		own := *c
		own.Segments, own.Cut = fitting, true
		c, s.large = &own, cmp.Or(s.large, large)
	}
	return s.Part(ctx, func(ctx context.Context, o prove.Options) (*prove.Proof, error) {
		return prove.Run(ctx, s.options(o, s.list.after), c)
	})
}

func (s *Survey) options(o prove.Options, after backup.Hash) prove.Options {
	o.Noted = func(ctx context.Context, index consensus.Index) (*backup.GapName, error) {
		return fetch.Noted(ctx, s.Store, s.Cluster, index)
	}
	o.Store, o.After, o.Known, o.Lacks, o.ObjectBytes = s.Store, after, s.Op.Known, s.Op.Lacks, s.ObjectBytes
	return o
}

// fitting returns the segments for which there is memory, and says which one is the first that is too large.
func (s *Survey) fitting(segments []backup.Stored) (fitting []backup.Stored, large error) {
	if s.ObjectBytes == 0 {
		return segments, nil
	}
	n := slices.IndexFunc(segments, func(one backup.Stored) bool { return one.Size > s.ObjectBytes })
	if n < 0 {
		return segments, nil
	}
	large = fmt.Errorf("object %v has %d bytes, and this member has memory for %d: raise its --memory",
		&segments[n].SegmentName, segments[n].Size, s.ObjectBytes)
	fitting = slices.DeleteFunc(slices.Clone(segments), func(one backup.Stored) bool { return one.Size > s.ObjectBytes })
	return fitting, large
}
