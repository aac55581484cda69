package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// change is a configuration entry of a shadow log, or the configuration that a log begins with.
type change struct {
	id        consensus.ConfigID // stage 0
	protocol  consensus.Protocol // zero for the first configuration of a cluster
	abort     bool
	config    consensus.Config // as the entry holds it
	tombs     []consensus.MemberID
	settledBy consensus.Index // the no-op, in that log, that says that the change is in force; or zero
	settled   bool            // for the beginning of a log: the change is complete
}

// ruling is a configuration by which a member counts.
type ruling struct {
	id     consensus.ConfigID
	config consensus.Config
}

func (c *change) position() consensus.Position {
	return consensus.Position{Index: c.id.Index, Term: c.id.Term}
}

// activates reports whether the entry holds both sets, the new one being in force where the entry is known to be committed.
func (c *change) activates() bool {
	return c.protocol == consensus.ProtocolActivate && c.config.IsJoint()
}

// needsNotice reports whether a later entry must say that the change is in force before members may be switched off.
func (c *change) needsNotice() bool {
	return c.activates() || (c.protocol == consensus.ProtocolApply && !c.config.IsJoint())
}

// half reports whether another configuration entry has to follow.
func (c *change) half() bool { return c.config.IsJoint() && !c.activates() }

// doneAt reports whether the change is complete in a log that is committed up to index.
func (c *change) doneAt(index consensus.Index) bool {
	switch {
	case c.id.Index > index:
		return false
	case c.settled || (c.settledBy > 0 && c.settledBy <= index):
		return true
	}
	return !c.half() && !c.needsNotice()
}

// changes returns the configuration at the beginning of the log and those in its entries, oldest first.
func (w *shadow) changes() []*change {
	all := make([]*change, 0, len(w.configs)+1)
	all = append(all, &w.floor)
	for i := range w.configs {
		all = append(all, &w.configs[i])
	}
	return all
}

func (w *shadow) lastChange() *change {
	if n := len(w.configs); n > 0 {
		return &w.configs[n-1]
	}
	return &w.floor
}

// find returns a change of the log and the one after it, or nil.
func (w *shadow) find(id consensus.ConfigID) (found, next *change) {
	all := w.changes()
	for i := range all {
		if all[i].id.Index != id.Index || all[i].id.Term != id.Term {
			continue
		}
		if i+1 < len(all) {
			next = all[i+1]
		}
		return all[i], next
	}
	return nil, nil
}

// governing returns the change whose configuration must be in force, by the rule of its protocol: in force at append, except
// that with protocol apply it is in force when applied.
func (w *shadow) governing() *change {
	at := len(w.configs) - 1
	for at >= 0 && w.configs[at].protocol == consensus.ProtocolApply && w.configs[at].id.Index > w.applied {
		at--
	}
	if at < 0 {
		return &w.floor
	}
	return &w.configs[at]
}

// rulings returns every configuration by which a member may have counted in its last step: the one in force before, the one in
// force now, and those between.
func (w *shadow) rulings() []*consensus.Config {
	list := []*consensus.Config{&w.was.config}
	for _, c := range w.changes() {
		if c.id.Index < w.was.id.Index || c.id.Index > w.told.id.Index {
			continue
		}
		list = append(list, &c.config)
		if c.activates() && (c.id.Index < w.told.id.Index || w.told.id.Stage > 0) {
			settled := c.config.Settle()
			list = append(list, &settled)
		}
	}
	return list
}

// Configured records the configuration that a member has in force; it is judged at the end of the step.
func (s *Suite) Configured(member consensus.MemberID, id consensus.ConfigID, config *consensus.Config) {
	w := s.logs.of(member)
	w.told, w.fresh = ruling{id, *config}, true
	s.recoveries.configured(id, config)
}

// judgeRuling checks that the configuration in force is the one that the log gives. With protocol activate that depends on the
// commit index that the member knows, which is bounded from both sides: it knows at least the index that it sent, wrote or
// applied, and at most the true one.
func (s *Suite) judgeRuling(member consensus.MemberID, w *shadow) {
	c := w.governing()
	if len(c.config.Members) == 0 && len(c.config.Voters) == 0 {
		return // it knows of no cluster yet
	}
	want := ruling{c.id, c.config}
	if c.activates() {
		active := w.told.id.Stage > 0
		if active && !s.decided(c) {
			s.report("configuration", "member %v activates configuration %v, which is not committed", member, c.id)
		}
		if active || w.known >= c.id.Index {
			want.id.Stage = 1
		}
		if w.fresh && want.id.Stage > 0 {
			want.config = c.config.Settle()
		}
	}
	if want.id != w.told.id {
		s.report("configuration", "member %v follows configuration %v (voters %v), its log says %v (voters %v, protocol %v)",
			member, w.told.id, w.told.config.Voters, want.id, want.config.Voters, c.protocol)
		return
	}
	if w.fresh && !sameRoles(&want.config, &w.told.config) {
		s.report("configuration", "member %v follows configuration %v with other members (%v) than its log says (%v)",
			member, want.id, roles(&w.told.config), roles(&want.config))
	}
	w.fresh = false
}

// decided reports whether a change has been committed; no member need know it.
func (s *Suite) decided(c *change) bool {
	return s.logs.chosenAt(c.id.Index) == c.id.Term || s.durableOnMajorities(&c.config, c.position())
}

func sameRoles(a, b *consensus.Config) bool {
	return slices.Equal(a.Voters, b.Voters) && slices.Equal(a.Outgoing, b.Outgoing) &&
		slices.Equal(a.Learners, b.Learners) && slices.Equal(a.LearnersNext, b.LearnersNext) &&
		slices.Equal(a.IDs(), b.IDs())
}

func roles(c *consensus.Config) [5][]consensus.MemberID {
	return [5][]consensus.MemberID{c.Voters, c.Outgoing, c.Learners, c.LearnersNext, c.IDs()}
}

// Joining returns the members that vote by the last change in a member's log and did not vote before it.
func (s *Suite) Joining(member consensus.MemberID) []consensus.MemberID {
	all := s.logs.of(member).changes()
	last, before := all[len(all)-1], all[max(len(all)-2, 0)]
	return slices.DeleteFunc(slices.Clone(last.config.Voters), func(id consensus.MemberID) bool {
		return slices.Contains(last.config.Outgoing, id) || slices.Contains(before.config.Voters, id)
	})
}

// Changing reports whether the last change in a member's log is not settled, as far as that member knows.
func (s *Suite) Changing(member consensus.MemberID) bool {
	w := s.logs.of(member)
	return !w.lastChange().doneAt(w.known)
}

// LostHalf reports whether, by one of several configurations, the lost members, learners included, are as many as half of a set
// of voters. Voters that are leaving count as removed already: without the strict check, operators may bring that about later,
// by removing other voters.
func LostHalf(configs []*consensus.Config, lost, leaving map[consensus.MemberID]bool) bool {
	for _, config := range configs {
		n := 0
		for _, id := range config.IDs() {
			if lost[id] {
				n++
			}
		}
		stay := slices.DeleteFunc(slices.Clone(config.Voters), func(id consensus.MemberID) bool { return leaving[id] })
		if len(config.Voters) > 0 && 2*n >= len(stay) || len(config.Outgoing) > 0 && 2*n >= len(config.Outgoing) {
			return true
		}
	}
	return false
}
