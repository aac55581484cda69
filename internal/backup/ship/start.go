package ship

import (
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
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

// Begin says where a member begins that has applied the entries up to applied: with the last state in a catalog that can be
// restored and is in the member's own chain, or anew. own returns the chain's sum after an entry, as far as the member knows
// it and its log has the entries that follow; secrets are those of the sets of recipients that the cluster knows of. The
// catalog must not have objects that were not put whole.
func Begin(
	c *backup.Catalog, applied consensus.Index, own func(consensus.Index) (sum uint64, known bool), secrets ...backup.Secret,
) Start {
	sets := map[backup.Set]*backup.Secret{0: {}}
	for i := range secrets {
		sets[secrets[i].Set()] = &secrets[i]
	}
	mine := func(p backup.Point, set backup.Set) bool {
		sum, known := own(p.Index)
		secret := sets[set]
		return known && secret != nil && secret.Label(backup.Point{Index: p.Index, Sum: sum}) == p
	}
	var best Start
	lost := consensus.Index(0)
	for i := len(c.Bases) - 1; i >= 0; i-- {
		base := &c.Bases[i]
		if i < len(c.Bases)-1 && base.Index <= best.Applied {
			break // those before lead to nothing later
		}
		if mine(base.Point, base.Set) && base.Index > best.Applied {
			best = Start{Applied: base.Index, Base: base}
		}
		lost = max(lost, base.Index)
		for n, segment := range c.LeadOn(base) {
			if mine(segment.End, segment.Set) && segment.End.Index > best.Applied {
				best = Start{Applied: segment.End.Index, Base: base, Continue: segment, Behind: n + 1}
			}
			lost = max(lost, segment.End.Index)
		}
	}
	if best.Base != nil {
		return best
	}
	return Start{Applied: applied, Lost: lost}
}
