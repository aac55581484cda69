package consensus

import "github.com/quorate/quorate/internal/base/keyrange"

// Footprint is what a command reads or may write. Two commands whose footprints do not conflict give the same results in
// either order, but for the revision (docs/fast-path.md). The core never looks into a command: a caller that knows commands
// tells it their footprints.
type Footprint struct {
	Keys   []keyrange.Range
	Leases []int64
	// Owners are the members, or native clients, whose sessions the command opens or ends. It meets whatever they propose, and
	// nothing else: a proposal gives nothing once its session has ended.
	Owners []MemberID
	// Barrier marks a command that meets every other one: it touches what no range tells (the keys of a lease, history,
	// alarms, jobs).
	Barrier bool
}

// MaxRecordKeys is how many keys and leases a command may touch on the fast path: as many as an etcd transaction has
// operations, unless it was told otherwise.
const MaxRecordKeys = 128

// Narrow reports whether the command may go the fast way: it touches few single keys. A range may be all keys: a voter that
// held it would refuse everything else, and a voter cannot tell a small range from a large one.
func (f *Footprint) Narrow() bool {
	if len(f.Keys)+len(f.Leases) > MaxRecordKeys {
		return false
	}
	for _, r := range f.Keys {
		if !r.IsSingle() {
			return false
		}
	}
	return true
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
