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
	hidden []error // of objects that cannot be read here
	claims map[backup.Hash]claim
	same   map[compared]bool // segments that have the entries of a plan's
}

// claim is what a segment says of a state.
type claim struct {
	at  consensus.Index
	sum uint64 // after it, if has is set
	has bool
	end uint64 // the sum after the segment
}

// compared is a segment that has, where a plan goes from one segment to another, the entries of the plan.
type compared struct {
	segment, first, last backup.Hash
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

// Hide leaves out an object of which Hidden is true: others may lead to the target, and somebody may have put it. If none do,
// the error of the search says why it was left out.
func (s *Search) Hide(object backup.Hash, err error) {
	s.leave(object)
	s.hidden = append(s.hidden, err)
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
			if err == nil && (s.Target.Time != 0 || s.Target.Revision != 0) {
				if again, err = s.agreed(ctx, s.Catalog.Times(plan, s.unreadable)); again {
					continue
				}
			}
		}
		if err != nil {
			return nil, errors.Join(append(slices.Concat(s.found, s.hidden), err)...)
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
	again, err = s.compare(ctx, p.Doubts())
	if unread := (*unreadError)(nil); Hidden(err) && errors.As(err, &unread) {
		s.Hide(unread.object, err)
		return true, nil
	}
	if again || err != nil {
		return again, err
	}
	again, err = s.compare(ctx, p.Links()) // what leads on from a base of another history is compared with the wrong line
	if Hidden(err) {
		err = nil // a restore finds that out
	}
	return again, err
}

// Hidden reports whether an error says that an object cannot be read here: it is encrypted to others, or too large for the
// memory or the disk.
func Hidden(err error) bool {
	large, room := (*backup.TooLargeError)(nil), (*backup.RoomError)(nil)
	return errors.Is(err, backup.ErrSealed) || errors.Is(err, backup.ErrRecipients) || errors.As(err, &large) ||
		errors.As(err, &room)
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
	m, err := s.manifest(ctx, l.Base)
	if err != nil {
		return 0, err
	}
	return uint64(m.Sum), nil
}

// manifest reads the manifest of a base.
func (s *Search) manifest(ctx context.Context, base *backup.Base) (*backup.Manifest, error) {
	content, err := fetch.Object(ctx, s.Store, base.String(), base.Hash, backup.ManifestWithin(s.ObjectBytes))
	if err != nil {
		return nil, of(base.Hash, base.String(), err)
	}
	m, err := backup.OpenManifestWithin(&base.BaseName, content, s.Open, s.ObjectBytes)
	return m, of(base.Hash, base.String(), err)
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
	if err == nil {
		return segment, false, nil
	}
	bad, err = s.taken(ctx, err)
	return nil, bad, err
}

// taken takes the error of an object into the search: bad if that is damaged, and no plan has it any more. It returns what is
// neither that nor the want of an identity.
func (s *Search) taken(ctx context.Context, err error) (bad bool, _ error) {
	found := (*damage)(nil)
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.As(err, &found):
		s.Leave(found.object, found.err)
		return true, nil
	case errors.Is(err, backup.ErrSealed), errors.Is(err, backup.ErrRecipients):
		return false, nil
	}
	return false, err
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
	return &unreadError{object, name, err}
}

// unreadError is why an object could not be read that may be a good one.
type unreadError struct {
	object backup.Hash
	name   string
	err    error
}

func (u *unreadError) Error() string { return fmt.Sprintf("object %s: %v", u.name, u.err) }
func (u *unreadError) Unwrap() error { return u.err }

// agreed returns a backup.TimesError if objects at the place do not agree which state is the last one within a time or a
// revision: of one history they do not fall, but where a clock was wrong. again is true if damage was found that makes another
// plan.
func (s *Search) agreed(ctx context.Context, t *backup.Times) (again bool, err error) {
	if t.Within != nil {
		own, bad, err := s.readable(ctx, t.Within)
		if bad || err != nil {
			return bad, err
		}
		if own != nil {
			t.Settle(own)
		}
	}
	fallen := t.Fallen()
	if t.First == t.Last {
		inside, bad, err := s.inside(ctx, t)
		if bad || err != nil {
			return bad, err
		}
		fallen = append(fallen, inside...)
	}
	for i := range fallen {
		whole, bad, err := s.whole(ctx, &fallen[i])
		switch {
		case err != nil:
			return false, err
		case whole:
			return false, t.Error(&fallen[i])
		}
		again = again || bad
	}
	return again, nil
}

// inside returns what entries within segments beside the plan's last one say against the last state within the target.
func (s *Search) inside(ctx context.Context, t *backup.Times) (fallen []backup.Said, again bool, err error) {
	same := t.Beside()
	for _, stored := range same[:min(len(same), backup.MaxStrays)] {
		other, bad, err := s.readable(ctx, stored)
		if err != nil {
			return nil, false, err
		}
		if again = again || bad; other != nil {
			fallen = append(fallen, t.Inside(stored, other)...)
		}
	}
	return fallen, again, nil
}

// whole reports whether an object that says a time is what its name says; bad: it is damaged, and no plan has it any more.
func (s *Search) whole(ctx context.Context, said *backup.Said) (whole, bad bool, err error) {
	if said.Segment != nil {
		segment, bad, err := s.readable(ctx, said.Segment)
		return segment != nil, bad, err
	}
	_, err = s.manifest(ctx, said.Base)
	bad, rest := s.taken(ctx, err)
	return err == nil, bad, rest
}
