package configs

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Reached returns what a majority, of each set of voters, has reached. Learners do not count, and neither does a leader that
// is no voter, unless countSelf, a fault, says so.
func (h *History) Reached(reached func(consensus.MemberID) uint64, countSelf bool) uint64 {
	c := &h.config
	values := h.scratch[:0]
	for _, id := range c.Voters {
		values = append(values, reached(id))
	}
	if countSelf && !c.IsVoter(h.self) {
		last := slices.Index(values, slices.Min(values)) // as many as the voters need, itself among them
		values[last] = max(values[last], reached(h.self))
	}
	if h.dropped[rules.CountLearners] {
		for _, id := range c.Learners {
			values = append(values, reached(id))
		}
	}
	if h.dropped[rules.UnionOfJoint] {
		for _, id := range c.Outgoing {
			if !slices.Contains(c.Voters, id) {
				values = append(values, reached(id))
			}
		}
	}
	result := quorum.Reached(values)
	if c.IsJoint() && !h.dropped[rules.UnionOfJoint] && !h.dropped[rules.IncomingDecides] {
		values = values[:0]
		for _, id := range c.Outgoing {
			values = append(values, reached(id))
		}
		result = min(result, quorum.Reached(values))
	}
	h.scratch = values
	return result
}

// Bound reports whether this member speaks for the data directory that the configuration binds it to, so that it may count
// itself. Others decide by the same rule whether to count it (package identity).
func (h *History) Bound() bool {
	b := h.config.BindingOf(h.self, h.storage)
	return b != consensus.BindingNone && b != consensus.BindingOther || h.dropped[rules.IgnoreBinding]
}

// Votes reports whether this member is a voter that may count itself.
func (h *History) Votes() bool { return h.config.IsVoter(h.self) && h.Bound() }

// MayStand reports whether this member counts as a candidate. One that an uncommitted entry removes may be the only one with
// a log long enough to be elected, and campaigns without counting itself (Raft thesis, section 4.2.2). One that knows of a
// change which it has not applied does not know yet whom to count (protocol apply).
func (h *History) MayStand() bool {
	if !h.Bound() || h.AwaitsApply() {
		return false
	}
	votes := h.config.IsVoter(h.self)
	for i := range h.records {
		c := &h.records[i]
		if i > 0 && !h.Committed(c) && c.Protocol != consensus.ProtocolApply {
			votes = votes || h.records[i-1].Config.IsVoter(h.self)
		}
	}
	return votes
}

// MayStandIn reports whether this member may be a candidate if it is needed, whatever it is itself: it knows whom to count.
func (h *History) MayStandIn() bool { return h.Bound() && !h.AwaitsApply() }

// AwaitsApply reports whether a change has committed that comes into force once it is applied, and is not applied here.
func (h *History) AwaitsApply() bool {
	for i := range h.records {
		if c := &h.records[i]; c.Protocol == consensus.ProtocolApply && h.Committed(c) && h.NotApplied(c) {
			return true
		}
	}
	return false
}

// MayAbort returns why the change at the end of the log cannot be aborted, ReasonNone if it can.
func (h *History) MayAbort() consensus.RefusalReason {
	c := h.Last()
	switch {
	case !c.Config.IsJoint() || h.LastSettled():
		return consensus.ReasonNoChange
	case c.Protocol == consensus.ProtocolApply:
		return consensus.ReasonProtocol
	case c.Protocol == consensus.ProtocolActivate, c.Protocol == consensus.ProtocolJointEarly && h.Committed(c):
		return consensus.ReasonTooLate // it may have been reported, or a member acts on it already
	}
	return consensus.ReasonNone
}

// Recipients returns the members that a leader sends its log to, but for the removed: those of the configuration in force
// and of every change that is not settled. A member that a change removes gets the log, counting nowhere, until the change is
// settled, so that it learns of its removal.
func (h *History) Recipients() []consensus.MemberID {
	var ids []consensus.MemberID
	add := func(id consensus.MemberID) {
		if !h.IsTombstone(id) {
			ids = append(ids, id)
		}
	}
	for i := range h.config.Members {
		add(h.config.Members[i].ID)
	}
	for i := range h.records {
		c := &h.records[i]
		if h.isSettled(i) {
			continue
		}
		for j := range c.Config.Members {
			add(c.Config.Members[j].ID)
		}
		for _, id := range c.Tombs {
			add(id)
		}
	}
	return ids
}

// Knows reports whether a member is, or was, part of a configuration that the log knows of.
func (h *History) Knows(id consensus.MemberID) bool {
	if h.IsTombstone(id) {
		return true
	}
	for i := range h.records {
		if c := &h.records[i]; c.Config.Contains(id) || slices.Contains(c.Tombs, id) {
			return true
		}
	}
	return false
}

// AddTombstone notes that a committed change removed a member for ever.
func (h *History) AddTombstone(id consensus.MemberID) {
	if at, found := slices.BinarySearch(h.tombstones, id); !found {
		h.tombstones = slices.Insert(h.tombstones, at, id)
	}
}

// IsTombstone reports whether a member was removed for ever.
func (h *History) IsTombstone(id consensus.MemberID) bool {
	_, found := slices.BinarySearch(h.tombstones, id)
	return found
}

// Tombstones returns the members that were removed for ever, sorted. It is never written to.
func (h *History) Tombstones() []consensus.MemberID { return h.tombstones }
