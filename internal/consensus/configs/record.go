package configs

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Record is a configuration entry of the log, or the configuration that the log begins with.
type Record struct {
	ID       consensus.ConfigID // stage 0
	Protocol consensus.Protocol // zero for the first configuration of a cluster
	Config   consensus.Config   // as in the entry; never written to: outputs share it
	Tombs    []consensus.MemberID
	// SettledBy is the entry, in the log, that settles a change whose protocol has no second entry; or zero.
	SettledBy consensus.Index

	base    bool // from a snapshot or the store, which also says whether the change was open there
	open    bool
	ordinal uint64
	// noNotice, a fault: no entry says that the change is in force.
	noNotice bool
}

// baseRecord returns the record of the configuration that a log begins with.
func baseRecord(base *consensus.SnapshotMeta) Record {
	id := base.ConfigID
	id.Stage = 0
	return Record{
		ID: id, Protocol: base.Protocol, Config: base.Config.Clone(), Tombs: slices.Clone(base.Tombs),
		base: true, open: base.Open,
	}
}

// Activates reports whether the record has both sets of voters and the new one is in force once the record has committed.
func (c *Record) Activates() bool {
	return c.Protocol == consensus.ProtocolActivate && c.Config.IsJoint()
}

// NeedsNotice reports whether members other than the leader can have the change without knowing that it is in force, so
// that an entry which says so must commit before any member may be switched off.
func (c *Record) NeedsNotice() bool {
	return c.Activates() && !c.noNotice || (c.Protocol == consensus.ProtocolApply && !c.Config.IsJoint())
}

// openAt reports whether the log up to index, all of it committed, does not settle the change.
func (c *Record) openAt(index consensus.Index) bool {
	switch {
	case c.SettledBy > 0 && c.SettledBy <= index:
		return false
	case c.base:
		return c.open
	}
	return c.NeedsNotice() || c.Config.IsJoint() && !(c.noNotice && c.Activates())
}
