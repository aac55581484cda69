package consensus

import "github.com/quorate/quorate/internal/keyrange"

// Footprint is what a command reads or may write. Two commands whose footprints do not conflict give the same results in
// either order, but for the revision (docs/fast-path.md). The core never looks into a command: who knows commands tells it
// their footprints.
type Footprint struct {
	Keys   []keyrange.Range
	Leases []int64
	// Barrier marks a command that meets every other one: it touches what no range tells (the keys of a lease, history,
	// alarms, sessions, jobs).
	Barrier bool
}

// Conflicts reports whether the order of two commands may matter.
func (f *Footprint) Conflicts(other *Footprint) bool {
	if f.Barrier || other.Barrier {
		return true
	}
	for _, mine := range f.Keys {
		for _, theirs := range other.Keys {
			if mine.Overlaps(theirs) {
				return true
			}
		}
	}
	for _, mine := range f.Leases {
		for _, theirs := range other.Leases {
			if mine == theirs {
				return true
			}
		}
	}
	return false
}
