package kv

import "github.com/quorate/quorate/internal/keyrange"

// Footprint is what a command reads or may write: the ranges of its keys, compares and both branches of its
// transactions, and its leases. Two commands whose footprints do not conflict give the same results in either order,
// but for the revision (fastpath.md, "Words").
type Footprint struct {
	Keys   []keyrange.Range
	Leases []LeaseID
	// Barrier marks a command that meets every other one: it touches what no range tells (the keys of a lease, history,
	// alarms, sessions, jobs).
	Barrier bool
}

// FootprintOf returns the footprint of c. It aliases the keys of c.
func FootprintOf(c *Command) Footprint {
	var f Footprint
	switch {
	case c.Put != nil:
		f.addPut(c.Put)
	case c.Delete != nil:
		f.Keys = append(f.Keys, keyrange.From(c.Delete.Key, c.Delete.End))
	case c.Txn != nil:
		f.addTxn(c.Txn)
	case c.LeaseGrant != nil:
		f.Leases = append(f.Leases, c.LeaseGrant.ID)
	default:
		f.Barrier = true
	}
	return f
}

func (f *Footprint) addPut(op *PutOp) {
	f.Keys = append(f.Keys, keyrange.Single(op.Key))
	if op.Lease != 0 {
		f.Leases = append(f.Leases, op.Lease)
	}
}

func (f *Footprint) addTxn(op *TxnOp) {
	for i := range op.Compares {
		f.Keys = append(f.Keys, keyrange.From(op.Compares[i].Key, op.Compares[i].End))
	}
	for _, branch := range [...][]Op{op.Then, op.Else} {
		for i := range branch {
			switch o := &branch[i]; {
			case o.Range != nil:
				f.Keys = append(f.Keys, keyrange.From(o.Range.Key, o.Range.End))
			case o.Put != nil:
				f.addPut(o.Put)
			case o.Delete != nil:
				f.Keys = append(f.Keys, keyrange.From(o.Delete.Key, o.Delete.End))
			case o.Txn != nil:
				f.addTxn(o.Txn)
			}
		}
	}
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
