package survey

import (
	"errors"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/consensus"
)

// listing is what a member lists of a place for a proof, and what it has found of the bases before that.
type listing struct {
	catalog *backup.Catalog // of the end
	after   backup.Hash     // the proof of the end begins at this base
	before  prove.Proof     // of the bases up to that
	stays   bool            // before.Base is the one at which the next proof begins
}

func hasBase(c *backup.Catalog, base backup.Hash) bool {
	return slices.ContainsFunc(c.Bases, func(b backup.Base) bool { return b.Hash == base })
}

// between leaves the bases in a catalog that are to be compared: from the one after which they are (or from the first one, if
// that is gone) up to the first one of the list. Both are of members. Others of the entry of the first one follow it, whatever
// the order of their names.
func between(c *backup.Catalog, l *listing, known func(backup.Hash) bool) {
	made := func(b backup.Base) bool { return known(b.Hash) }
	first := 1 + slices.IndexFunc(c.Bases, func(b backup.Base) bool { return made(b) && hasBase(l.catalog, b.Hash) })
	at := slices.IndexFunc(c.Bases, func(b backup.Base) bool { return b.Hash == l.after })
	if at >= 0 && at < first {
		after := c.Bases[at]
		all := slices.DeleteFunc(slices.Clone(c.Bases[:first]), func(b backup.Base) bool {
			return b.Index < after.Index || b.Hash == after.Hash
		})
		c.Bases = slices.Insert(all, 0, after)
		return
	}
	if at < 0 {
		at = max(0, slices.IndexFunc(c.Bases, made))
	}
	c.Bases = c.Bases[min(at, first):first]
}

// add adds what was found of bases of which the last one is where the next part of the proof begins.
func (l *listing) add(found *prove.Proof, last backup.Hash) {
	l.after = last
	if !l.stays {
		l.before.Base, l.stays = found.Base, found.Base.Hash != last
	}
	l.before.Bases += found.Bases
	l.before.Entries += found.Entries
	l.before.Left += found.Left
	l.before.Apart += found.Apart
	l.before.Unknown += found.Unknown
	l.before.Holes += found.Holes
	l.before.Add(errors.Join(found.Damaged...))
}

// complete adds what was found of the bases before to the proof of the end.
func (l *listing) complete(found *prove.Proof) *prove.Proof {
	found.Bases += l.before.Bases
	found.Entries += l.before.Entries
	found.Left += l.before.Left
	found.Apart += l.before.Apart
	found.Unknown += l.before.Unknown
	found.Holes += l.before.Holes
	damaged := found.Damaged
	found.Damaged = slices.Clip(l.before.Damaged)
	found.Add(errors.Join(damaged...))
	if l.stays {
		found.Base = l.before.Base
	}
	return found
}

// bound bounds what the last note of retention in a catalog says. Somebody else may have put it: of the last two bases that
// members made the log stays, whatever it says.
func bound(c *backup.Catalog, known func(backup.Hash) bool) {
	if c.Kept == nil {
		return
	}
	last := [2]consensus.Index{} // of the last two bases
	for i := range c.Bases {
		if b := &c.Bases[i]; known(b.Hash) {
			last = [2]consensus.Index{last[1], b.Index}
		}
	}
	kept := *c.Kept
	kept.Floor = min(kept.Floor, last[0])
	c.Kept = &kept
}
