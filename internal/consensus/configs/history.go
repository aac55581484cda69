package configs

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// History is the configurations of a member's log. Begin with New and Reset.
type History struct {
	self    consensus.MemberID
	storage consensus.StorageID // this member's own data directory
	dropped rules.Set           // by a test

	records    []Record // oldest first: that of the base, then one for each configuration entry
	id         consensus.ConfigID
	config     consensus.Config // in force
	others     []consensus.Member
	at         int // the record of it
	commit     consensus.Index
	applied    consensus.Index
	seen       consensus.Index // records up to here were reported as committed
	settled    consensus.Index // and up to here as settled
	tombstones []consensus.MemberID
	scratch    []uint64
}

// New returns a history without configurations. The tombstones are the members removed for ever, as the state machine
// knows them.
func New(self consensus.MemberID, storage consensus.StorageID, tombstones []consensus.MemberID, dropped rules.Set) History {
	tombstones = slices.Clone(tombstones)
	slices.Sort(tombstones)
	return History{self: self, storage: storage, tombstones: tombstones, dropped: dropped}
}

// Reset begins anew with what a log begins after. The entries that follow are appended next.
func (h *History) Reset(base *consensus.SnapshotMeta, commit, applied consensus.Index) {
	first := baseRecord(base)
	h.records = append(h.records[:0:0], first)
	h.commit, h.applied = commit, applied
	h.seen = max(h.seen, first.ID.Index)
	if !base.Open {
		h.settled = max(h.settled, first.ID.Index)
	}
	h.id, h.config, h.others, h.at = consensus.ConfigID{}, consensus.Config{}, nil, 0
}

// Config returns the configuration in force. It is never written to.
func (h *History) Config() *consensus.Config { return &h.config }

// ID returns the id of the configuration in force.
func (h *History) ID() consensus.ConfigID { return h.id }

// InForce returns the record of the configuration in force.
func (h *History) InForce() *Record { return &h.records[h.at] }

// Last returns the last record of the log.
func (h *History) Last() *Record { return &h.records[len(h.records)-1] }

// Len returns how many records there are.
func (h *History) Len() int { return len(h.records) }

// Committed reports whether a record has committed.
func (h *History) Committed(c *Record) bool { return c.ID.Index <= h.commit }

// NotApplied reports whether a record has not been applied here.
func (h *History) NotApplied(c *Record) bool { return c.ID.Index > h.applied }

// Append notes what an entry brings: a configuration, or that the last one is settled. It returns up to where the entry
// proves that the log is committed, or zero. That a change was proposed at all proves that the one which it replaces has
// committed, and what settled it: its leader knew it. Only an abort comes before that.
func (h *History) Append(e *consensus.Entry) (proven consensus.Index) {
	if e.Kind == consensus.EntryNoop {
		return h.noteSettling(e)
	}
	if e.Kind != consensus.EntryConfig {
		return 0
	}
	change, err := consensus.DecodeConfigChange(e.Payload)
	if err != nil {
		return 0 // no message and no log brings one: see consensus.CheckEntry
	}
	h.records = append(h.records, Record{
		ID:       consensus.ConfigID{Index: e.Index, Term: e.Term},
		Protocol: change.Protocol,
		Config:   change.Config,
		Tombs:    change.Tombs,
		noNotice: h.dropped[rules.NoNotice],
		ordinal:  h.Last().ordinal + 1,
	})
	if change.Abort || h.dropped[rules.TwoChanges] {
		return 0
	}
	replaced := &h.records[len(h.records)-2]
	return max(replaced.ID.Index, replaced.SettledBy)
}

// noteSettling notes which entry settles the last change. Its leader knew that the change had committed, so a member that has
// it in the log knows too, also if it forgot, or never heard, how far the log is committed: members that the change removed
// may be switched off as soon as a majority has the entry, and no other member knows.
func (h *History) noteSettling(e *consensus.Entry) (proven consensus.Index) {
	if len(e.Payload) == 0 {
		return 0
	}
	id, err := consensus.DecodeConfigID(e.Payload)
	c := h.Last()
	if err != nil || c.ID.Index != id.Index || c.SettledBy != 0 {
		return 0
	}
	c.SettledBy = e.Index
	return c.ID.Index
}

// Truncate undoes what entries from from on had brought, and returns the ids of the configurations, the last one first.
func (h *History) Truncate(from consensus.Index) (undone []consensus.ConfigID) {
	n := len(h.records)
	for n > 1 && h.records[n-1].ID.Index >= from {
		n--
		undone = append(undone, h.records[n].ID)
	}
	h.records = slices.Delete(h.records, n, len(h.records))
	if c := h.Last(); c.SettledBy >= from {
		c.SettledBy = 0
	}
	return undone
}

// Compact forgets records that a log which begins after base no longer needs.
func (h *History) Compact(base consensus.Index) {
	n := 0
	for n+1 < len(h.records) && h.records[n+1].ID.Index <= base {
		n++
	}
	h.records = slices.Delete(h.records, 0, n)
	h.at -= n
}

// ApplyTo notes that everything up to index is applied.
func (h *History) ApplyTo(index consensus.Index) { h.applied = index }

// Milestone is what the commit index brought for one configuration.
type Milestone struct {
	ID        consensus.ConfigID
	Committed bool
	Settled   bool // the change to this configuration, not only the first half of it
	Removed   []consensus.MemberID
}

// CommitTo notes that everything up to index is committed, and returns what that brought, oldest configuration first.
func (h *History) CommitTo(index consensus.Index) (reached []Milestone) {
	h.commit = index
	for i := range h.records {
		c := &h.records[i]
		m := Milestone{ID: c.ID}
		if c.ID.Index > h.seen && h.Committed(c) {
			h.seen = c.ID.Index
			m.Committed = true
		}
		settles := c.ID.Index > h.settled && h.isSettled(i)
		if settles {
			h.settled = c.ID.Index
			m.Settled = c.Activates() || !c.Config.IsJoint() // else it is its successor that is settled
			m.Removed = c.Tombs
		}
		if m.Committed || settles {
			reached = append(reached, m)
		}
	}
	return reached
}

// Revise finds out which configuration is in force, and reports whether that is another one than before.
func (h *History) Revise() bool {
	at := len(h.records) - 1
	for at > 0 && h.records[at].Protocol == consensus.ProtocolApply && h.NotApplied(&h.records[at]) {
		at--
	}
	c := &h.records[at]
	id := c.ID
	activated := c.Activates() && h.Committed(c)
	if activated {
		id.Stage = 1
	}
	if h.dropped[rules.ReuseConfigIDs] && c.ordinal > 0 {
		id = consensus.ConfigID{Index: consensus.Index(c.ordinal), Stage: id.Stage}
	}
	h.at = at
	if id == h.id && len(h.config.Members) > 0 {
		return false
	}
	h.id, h.config = id, c.Config
	if activated {
		h.config = c.Config.Settle()
	}
	h.others = h.findOthers()
	return true
}

// Others returns the members of other configurations of the log that the one in force did not have when it came into force, but
// for those that were removed for ever, sorted by their ids. Each is as the last of these configurations has it.
func (h *History) Others() []consensus.Member { return h.others }

func (h *History) findOthers() (others []consensus.Member) {
	for i := len(h.records) - 1; i >= 0; i-- {
		for _, m := range h.records[i].Config.Members {
			at, found := slices.BinarySearchFunc(others, m.ID, func(m consensus.Member, id consensus.MemberID) int {
				return cmp.Compare(m.ID, id)
			})
			_, removed := slices.BinarySearch(h.tombstones, m.ID)
			if !found && !removed && !h.config.Contains(m.ID) {
				others = slices.Insert(others, at, m)
			}
		}
	}
	return others
}

// isSettled reports whether the i-th configuration can be taken for granted: it has committed, it is not half of a change,
// and enough members know that it is in force. Then those whom it removes learn of it. A committed successor proves it.
func (h *History) isSettled(i int) bool {
	if i+1 < len(h.records) && h.Committed(&h.records[i+1]) {
		return true
	}
	c := &h.records[i]
	return h.Committed(c) && !c.openAt(h.commit)
}

// Settled reports whether the configuration in force is settled.
func (h *History) Settled() bool { return h.isSettled(h.at) }

// LastSettled reports whether the last configuration of the log is settled.
func (h *History) LastSettled() bool { return h.isSettled(len(h.records) - 1) }

// Stable reports whether the configuration in force is the last of the log, not joint, settled and applied here.
func (h *History) Stable() bool {
	c := h.Last()
	return c == h.InForce() && !h.config.IsJoint() && !h.NotApplied(c) && h.LastSettled()
}

// MetaAt returns what a snapshot at a position of the log stands for.
func (h *History) MetaAt(position consensus.Position) consensus.SnapshotMeta {
	at := 0
	for i := range h.records {
		if i == 0 || h.records[i].ID.Index <= position.Index {
			at = i
		}
	}
	c := &h.records[at]
	meta := consensus.SnapshotMeta{
		Position: position, Config: c.Config, ConfigID: c.ID, Protocol: c.Protocol, Open: c.openAt(position.Index),
	}
	if meta.Open {
		meta.Tombs = c.Tombs
	}
	return meta
}

// Before returns the id of the last configuration that the log has before index.
func (h *History) Before(index consensus.Index) consensus.ConfigID {
	at := 0
	for i := range h.records {
		if h.records[i].ID.Index < index {
			at = i
		}
	}
	return h.records[at].ID
}
