package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Search looks for plans of a target, each without the objects that were found to be damaged before.
type Search struct {
	Store   objects.Store
	Open    backup.Opener // decrypts; nil: nothing that is encrypted can be read
	Catalog *backup.Catalog
	Target  backup.Target
	// ObjectBytes bounds the memory in which an object is read; zero: what their forms allow.
	ObjectBytes int64
	// OneHistory refuses a target of which the place may have two states: backup.HistoriesError, backup.EndedError. It is for
	// readers that know nothing of the cluster but the place.
	OneHistory bool
	Damaged    func(error) // if set, is told of each object that is damaged

	bad    map[backup.Hash]bool
	blamed map[backup.Hash]bool // of these, what can be read, and is left out for what a replay found
	found  []error
	claims map[backup.Hash]claim
}

// claim is what a segment says of a state.
type claim struct {
	at  consensus.Index
	sum uint64 // after it, if has is set
	has bool
	end uint64 // the sum after the segment
}

// Leave takes damage of an object into the search: no plan has it any more.
func (s *Search) Leave(object backup.Hash, err error) {
	delete(s.blamed, object)
	s.leave(object)
	s.found = append(s.found, err)
	if s.Damaged != nil {
		s.Damaged(err)
	}
}

// Blame is Leave for a segment that a replay found to differ. The base below may be the cause: the segment still is a rival of
// others.
func (s *Search) Blame(segment backup.Hash, err error) {
	s.Leave(segment, err)
	s.doubt(segment)
}

// Doubt leaves an object out without calling it damaged.
func (s *Search) Doubt(object backup.Hash) {
	s.leave(object)
	s.doubt(object)
}

func (s *Search) leave(object backup.Hash) {
	if s.bad == nil {
		s.bad = map[backup.Hash]bool{}
	}
	s.bad[object] = true
}

func (s *Search) doubt(object backup.Hash) {
	if s.blamed == nil {
		s.blamed = map[backup.Hash]bool{}
	}
	s.blamed[object] = true
}

// Blamed reports whether an object is left out for what a replay found, and may be right.
func (s *Search) Blamed(object backup.Hash) bool { return s.blamed[object] }

func (s *Search) damaged(object backup.Hash) bool { return s.bad[object] }

// unreadable reports whether an object is left out for what it is itself.
func (s *Search) unreadable(object backup.Hash) bool { return s.bad[object] && !s.blamed[object] }

// Suspect leaves out a segment of which it is not known yet whether it or the base before it is damaged, if others lead from
// the base to the target; false: none do. Clear takes it back.
func (s *Search) Suspect(base *backup.Base, segment backup.Hash) bool {
	only := &backup.Catalog{Cluster: s.Catalog.Cluster, Bases: []backup.Base{*base}, Segments: s.Catalog.Segments}
	_, err := only.Plan(s.Target, func(h backup.Hash) bool { return h == segment || s.damaged(h) })
	if err == nil {
		s.Doubt(segment)
	}
	return err == nil
}

// Clear takes back that a segment is suspect.
func (s *Search) Clear(segment backup.Hash) {
	delete(s.bad, segment)
	delete(s.blamed, segment)
}

// Found returns all damage that was found.
func (s *Search) Found() []error { return s.found }

// Plan returns the next plan. The error has all damage that was found; a backup.UnreachableError is in it if no plan is left.
func (s *Search) Plan(ctx context.Context) (*backup.Plan, error) {
	for {
		plan, err := s.Catalog.Plan(s.Target, s.damaged)
		if err == nil && s.OneHistory {
			var again bool
			if again, err = s.lead(ctx, plan); again {
				continue
			}
			if err == nil && !s.Catalog.Chosen() {
				if again, err = s.sole(ctx, plan); again {
					continue
				}
			}
			if err == nil {
				err = s.Timed(ctx, plan.Least())
			}
		}
		if err != nil {
			return nil, errors.Join(append(s.found, err)...)
		}
		return plan, nil
	}
}

// lead compares the links by which a plan leads on with what the segments hold; again is true if something was found that makes
// another plan.
func (s *Search) lead(ctx context.Context, p *backup.Plan) (again bool, err error) {
	if s.Catalog.Unproved(p) {
		s.leave(p.Base.Hash)
		return true, nil
	}
	if again, err = s.compare(ctx, p.Doubts()); again || err != nil {
		return again, err
	}
	large := (*backup.TooLargeError)(nil)
	again, err = s.compare(ctx, p.Links()) // what leads on from a base of another history is compared with the wrong line
	if errors.Is(err, backup.ErrSealed) || errors.Is(err, backup.ErrRecipients) || errors.As(err, &large) {
		err = nil // a restore finds that out
	}
	return again, err
}

// sole returns an error if a plan's state is one of two that the place has; again is true if damage was found that makes
// another plan.
func (s *Search) sole(ctx context.Context, p *backup.Plan) (again bool, err error) {
	if err := s.Catalog.Beside(p); err != nil {
		return false, err
	}
	ends, bases := s.Catalog.Strays(p, s.damaged)
	if len(ends) > backup.MaxStrays {
		return false, fmt.Errorf("more than %d segments at the place end beside the others: two members shipped at once very "+
			"often, or somebody else writes there. Name the history that is meant: --history %s", backup.MaxStrays,
			backup.PointName(p.LineEnd().Point))
	}
	found := len(s.found)
	for _, strays := range [][]backup.Stray{ends, bases} {
		for i := range strays {
			apart, err := s.apart(ctx, &strays[i])
			switch {
			case err != nil:
				return false, err
			case len(s.found) > found:
				return true, nil
			case apart:
				return false, &backup.HistoriesError{Target: s.Target, Ends: []backup.Head{p.LineEnd(), strays[i].End}}
			}
		}
	}
	return false, nil
}

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

// compare compares links with what the segments hold, until one is found that makes another plan.
func (s *Search) compare(ctx context.Context, links []backup.Link) (again bool, err error) {
	for i := range links {
		through, err := s.through(ctx, &links[i])
		damage := (*damage)(nil)
		switch {
		case errors.As(err, &damage) && ctx.Err() == nil:
			s.Leave(damage.object, damage.err)
			return true, nil
		case err != nil:
			return false, err
		case !through:
			return true, nil
		}
	}
	return false, nil
}

// apart reports whether a stray is not known to be of the history of the line beside it, or of one that is the same up to what
// is asked for. A segment for which an identity is missing, and a base that is damaged, say nothing.
func (s *Search) apart(ctx context.Context, stray *backup.Stray) (bool, error) {
	if !stray.Apart() {
		if apart, err := s.parted(ctx, stray.Link); !apart || err != nil {
			return false, err
		}
	}
	for i := range stray.Others {
		if apart, err := s.parted(ctx, stray.Others[i]); !apart || err != nil {
			return false, err
		}
	}
	return true, nil
}

// parted reports whether the state of a link is not known to be of the segment's history. Another segment of the same range
// takes the place of one that is damaged.
func (s *Search) parted(ctx context.Context, l backup.Link) (bool, error) {
	for {
		link, whole := s.Catalog.Whole(l, s.damaged)
		if !whole {
			return true, nil
		}
		through, err := s.through(ctx, &link)
		damage, large := (*damage)(nil), (*backup.TooLargeError)(nil)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case errors.As(err, &damage):
			s.Leave(damage.object, damage.err)
			if link.Base != nil && damage.object == link.Base.Hash {
				return false, nil
			}
			continue
		case errors.As(err, &large):
			return true, nil
		case errors.Is(err, backup.ErrSealed), errors.Is(err, backup.ErrRecipients):
			return false, nil
		}
		return !through, err
	}
}

// through reports whether the segment of a link goes through its state, and notes it.
func (s *Search) through(ctx context.Context, l *backup.Link) (through bool, err error) {
	if through, known := s.Catalog.Noted(l); known {
		return through, nil
	}
	segment, err := s.segment(ctx, l.Segment)
	if err != nil {
		return false, err
	}
	sum, err := s.sumOf(ctx, l)
	if err != nil {
		return false, err
	}
	held, has := segment.SumAt(l.At.Index)
	if through = has && held == sum; !through {
		s.Catalog.Read(l.Segment, segment)
	}
	s.Catalog.Note(l, through)
	return through, nil
}

// Parted notes that the segment of a link does not go through its state, as a replay found, and through which others it goes.
func (s *Search) Parted(ctx context.Context, l *backup.Link) error {
	segment, err := s.segment(ctx, l.Segment)
	if err == nil {
		s.Catalog.Read(l.Segment, segment)
	}
	s.Catalog.Note(l, false)
	return ctx.Err()
}

// sumOf returns the chain's sum of the state of a link: names of encrypted objects have none.
func (s *Search) sumOf(ctx context.Context, l *backup.Link) (uint64, error) {
	if l.At.Set == 0 {
		return l.At.Sum, nil
	}
	if l.Of != nil {
		of, err := s.segment(ctx, l.Of)
		if err != nil {
			return 0, err
		}
		return of.Last().Sum, nil
	}
	most := backup.ManifestWithin(s.ObjectBytes)
	content, err := fetch.Object(ctx, s.Store, l.Base.String(), l.Base.Hash, most)
	if err != nil {
		return 0, of(l.Base.Hash, l.Base.String(), err)
	}
	m, err := backup.OpenManifestWithin(&l.Base.BaseName, content, s.Open, s.ObjectBytes)
	if err != nil {
		return 0, of(l.Base.Hash, l.Base.String(), err)
	}
	return uint64(m.Sum), nil
}

// segment reads a segment.
func (s *Search) segment(ctx context.Context, stored *backup.Stored) (*backup.Segment, error) {
	name := stored.String()
	if stored.Set != 0 && s.Open == nil {
		return nil, of(stored.Hash, name, backup.ErrSealed)
	}
	if s.ObjectBytes > 0 && stored.Size > s.ObjectBytes {
		return nil, of(stored.Hash, name, &backup.TooLargeError{Bytes: stored.Size, Most: s.ObjectBytes})
	}
	content, err := fetch.Segment(ctx, s.Store, stored)
	if err != nil {
		return nil, of(stored.Hash, name, err)
	}
	segment, err := backup.OpenSegmentWithin(&stored.SegmentName, content, s.Open, s.ObjectBytes)
	return segment, of(stored.Hash, name, err)
}

// readable reads a segment; nil: an identity for it is missing, or it is damaged (bad), and no plan has it any more.
func (s *Search) readable(ctx context.Context, stored *backup.Stored) (segment *backup.Segment, bad bool, err error) {
	segment, err = s.segment(ctx, stored)
	found := (*damage)(nil)
	switch {
	case err == nil:
		return segment, false, nil
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case errors.As(err, &found):
		s.Leave(found.object, found.err)
		return nil, true, nil
	case errors.Is(err, backup.ErrSealed), errors.Is(err, backup.ErrRecipients):
		return nil, false, nil
	}
	return nil, false, err
}

// damage is that of an object, or says that its form is a later build's.
type damage struct {
	object backup.Hash
	err    error
}

func (d *damage) Error() string { return d.err.Error() }
func (d *damage) Unwrap() error { return d.err }

// of attributes an error to an object, as damage if it is that.
func of(object backup.Hash, name string, err error) error {
	found := (*fetch.DamageError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &found):
		return &damage{object, err}
	case errors.Is(err, backup.ErrDamaged):
		return &damage{object, &fetch.DamageError{Name: name, Err: err}}
	case errors.Is(err, backup.ErrLater): // somebody may have made it up
		return &damage{object, fmt.Errorf("object %s: %w", name, err)}
	}
	return fmt.Errorf("object %s: %w", name, err)
}

// mostLate bounds the objects that are read for one refusal: they may be names of nothing.
const mostLate = 64

// Timed returns a backup.TimesError if the place has an object of an earlier entry than a state, of a time that is later than
// the target's. Sums of the chain do not cover times.
func (s *Search) Timed(ctx context.Context, at backup.Head) error {
	late := s.Catalog.Late(s.Target, at.Index, at.Epoch, s.damaged)
	for i := range late {
		if i < mostLate {
			if there, err := s.there(ctx, &late[i]); err != nil {
				return err
			} else if !there {
				continue
			}
		}
		return &backup.TimesError{Target: s.Target, At: at, Late: late[i]}
	}
	return nil
}

// there reports whether an object is what its name says, as far as it can be read.
func (s *Search) there(ctx context.Context, late *backup.Late) (bool, error) {
	if late.Segment != nil {
		segment, bad, err := s.readable(ctx, late.Segment)
		return segment != nil || !bad, err
	}
	content, err := fetch.Object(ctx, s.Store, late.String(), late.Base.Hash, backup.ManifestWithin(s.ObjectBytes))
	if err == nil && late.Base.Set == 0 {
		_, err = backup.OpenManifestWithin(&late.Base.BaseName, content, s.Open, s.ObjectBytes)
	}
	if found := (*damage)(nil); errors.As(of(late.Base.Hash, late.String(), err), &found) && ctx.Err() == nil {
		s.Leave(found.object, found.err)
		return false, nil
	}
	return err == nil, err
}
