package ship

import (
	"math"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Start is where a Shipper begins.
type Start struct {
	// Applied is the last entry before those that the Shipper is given.
	Applied consensus.Index
	// Continue is the segment that ends there; nil: there is none, or it is not continued.
	Continue *backup.Stored
	// Base is the newest base from which segments lead to Applied; nil: none, and the Shipper begins with one.
	Base *backup.Base
	// Behind is how many segments there are after Base.
	Behind int
	// Lost is the last entry that can be restored, if that is not continued: the entries after it are a gap.
	Lost consensus.Index
}

// Found is what a member knows when it begins.
type Found struct {
	// Catalog is what the place has. It must not have objects that were not put whole. Its names may be anybody's who can write
	// there.
	Catalog *backup.Catalog
	Applied consensus.Index // the last entry that the member has applied
	Now     int64           // milliseconds since 1970
	// Own returns the chain's sum after an entry, as far as the member knows it and its log has the entries that follow.
	Own     func(consensus.Index) (sum uint64, known bool)
	Secrets []backup.Secret // of the sets of recipients that the cluster knows of
	Known   []kv.BackupBase // that members reported: no others are continued; empty: all are
	// Restorable is the last entry that members reported as one that can be restored; zero: none was.
	Restorable consensus.Index
}

// ahead is how far the clock of another member may be ahead, in milliseconds.
const ahead int64 = 3600_000

// Begin says where a member begins: with the last state at the place that can be restored and is in the member's own chain, or
// anew. No object is continued whose time is more than an hour after now: all that follows would have that time, too.
func Begin(f *Found) Start {
	sets := map[backup.Set]*backup.Secret{0: {}}
	for i := range f.Secrets {
		sets[f.Secrets[i].Set()] = &f.Secrets[i]
	}
	// own reports whether a state is of the member's own chain, or may be: the member does not know what it was then, or by
	// which secret the state is named, as at a place to which the backup returns.
	own := func(p backup.Point, set backup.Set) (is, may bool) {
		secret := sets[set]
		sum, known := f.Own(p.Index)
		if known = known && secret != nil; !known {
			return false, true
		}
		is = secret.Label(backup.Point{Index: p.Index, Sum: sum}) == p
		return is, is
	}
	mine := func(p backup.Point, set backup.Set) bool {
		is, _ := own(p, set)
		return is
	}
	c := f.believed(f.Now + ahead)
	var best Start
	for i := len(c.Bases) - 1; i >= 0; i-- {
		base := &c.Bases[i]
		if i < len(c.Bases)-1 && base.Index <= best.Applied {
			break // those before lead to nothing later
		}
		if mine(base.Point, base.Set) && base.Index > best.Applied {
			best = Start{Applied: base.Index, Base: base}
		}
		for n, segment := range c.LeadOn(base) {
			if mine(segment.End, segment.Set) && segment.End.Index > best.Applied {
				best = Start{Applied: segment.End.Index, Base: base, Continue: segment, Behind: n + 1}
			}
		}
	}
	if f.Catalog.Cut {
		best = behindCut(c, best, mine)
	}
	if best.Base != nil || best.Continue != nil {
		return best
	}
	lost := f.end(func(p backup.Point, set backup.Set) bool {
		_, may := own(p, set)
		return may
	})
	if f.Restorable >= f.Applied { // the member is behind what was reported: all that it does not give was there
		lost = 0
	}
	return Start{Applied: f.Applied, Lost: lost}
}

// behindCut continues the last segment that is in the member's own chain, if that is later. The catalog leaves out what leads
// to it, so it is not known to be restorable: a base follows at once. It is no gap.
func behindCut(c *backup.Catalog, best Start, mine func(backup.Point, backup.Set) bool) Start {
	for i := range c.Segments {
		if s := &c.Segments[i]; s.End.Index > best.Applied && mine(s.End, s.Set) {
			best = Start{Applied: s.End.Index, Continue: s}
		}
	}
	return best
}

// end is the last entry that can be restored, of the history of this member as far as it knows: may is false of states that it
// never had, as after all volumes were rolled back. It may be of a member whose clock is far ahead of this one's, which is not
// continued: a name that somebody made up makes the note of a gap begin elsewhere, and no more. A state that members reported
// was there, whatever the list has: it may be cut, or be the list of a place from which somebody removed objects.
func (f *Found) end(may func(backup.Point, backup.Set) bool) consensus.Index {
	c, end := f.believed(math.MaxInt64), min(f.Restorable, f.Applied)
	for i := range c.Bases {
		base := &c.Bases[i]
		if !may(base.Point, base.Set) {
			continue
		}
		end = max(end, base.Index)
		for _, segment := range c.LeadOn(base) {
			if may(segment.End, segment.Set) {
				end = max(end, segment.End.Index)
			}
		}
	}
	return end
}

// believed returns what of the catalog may be continued: nothing is of a later entry than the member has applied, or of a time
// after latest, and members made the bases.
func (f *Found) believed(latest int64) *backup.Catalog {
	c := &backup.Catalog{Cluster: f.Catalog.Cluster}
	fits := func(index consensus.Index, time int64) bool { return index <= f.Applied && time <= latest }
	known := map[backup.Hash]bool{}
	for i := range f.Known {
		known[f.Known[i].Hash] = true
	}
	for i := range f.Catalog.Bases {
		if b := &f.Catalog.Bases[i]; fits(b.Index, b.Time) && (len(known) == 0 || known[b.Hash]) {
			c.Bases = append(c.Bases, *b)
		}
	}
	for i := range f.Catalog.Segments {
		if s := &f.Catalog.Segments[i]; fits(s.End.Index, s.Time) {
			c.Segments = append(c.Segments, *s)
		}
	}
	return c
}
