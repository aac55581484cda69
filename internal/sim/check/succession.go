package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// configAppended checks which configuration entry may follow which one: each replaces the one before it; a joint one is
// followed only by its second entry or by an abort; and outside of joint configurations the voters before and after differ by
// one.
func (s *Suite) configAppended(member consensus.MemberID, w *shadow, e *consensus.Entry) {
	now, err := consensus.DecodeConfigChange(e.Payload)
	if err != nil {
		s.report("configuration", "member %v: entry %v does not decode: %v", member, e.Position(), err)
		return
	}
	before := w.lastChange()
	if len(before.config.Voters) > 0 {
		want := before.id
		if before.activates() {
			want.Stage = 1
		}
		if now.Replaces != want {
			s.report("configuration", "member %v: entry %v replaces configuration %v, but %v is in force",
				member, e.Position(), now.Replaces, want)
		}
		if why := s.misfit(before, e.Position(), &now); why != "" {
			s.report("configuration", "member %v: entry %v (%v, voters %v, outgoing %v) %s: before it is %v (%v, voters %v, "+
				"outgoing %v)", member, e.Position(), now.Protocol, now.Config.Voters, now.Config.Outgoing, why,
				before.id, before.protocol, before.config.Voters, before.config.Outgoing)
		}
	}
	w.configs = append(w.configs, change{
		id:       consensus.ConfigID{Index: e.Index, Term: e.Term},
		protocol: now.Protocol, abort: now.Abort, config: now.Config.Clone(), tombs: slices.Clone(now.Tombs),
	})
}

// noticed notes a no-op that says that the change before it is in force.
func (w *shadow) noticed(e *consensus.Entry) {
	id, err := consensus.DecodeConfigID(e.Payload)
	if c := w.lastChange(); len(e.Payload) > 0 && err == nil && c.id.Index == id.Index && c.settledBy == 0 {
		c.settledBy = e.Index
	}
}

// misfit says why an entry may not follow the configuration before it; empty: it may.
func (s *Suite) misfit(before *change, position consensus.Position, now *consensus.ConfigChange) string {
	if why := outline(now); why != "" {
		return why
	}
	for i := range now.Config.Members {
		if s.removals.goneBefore(now.Config.Members[i].ID, position) {
			return "brings back a member that was removed for ever"
		}
	}
	switch {
	case now.Abort:
		return misfitAbort(before, now)
	case before.half():
		settled := before.config.Settle()
		if now.Protocol != before.protocol || !sameRoles(&settled, &now.Config) {
			return "is not the second half of the change"
		}
		if !slices.Equal(now.Tombs, before.config.Retiring()) {
			return "buries others than those who leave"
		}
		return ""
	}
	rules := before.config
	if before.activates() {
		rules = before.config.Settle()
	}
	if now.Config.IsJoint() {
		if !slices.Equal(now.Config.Outgoing, rules.Voters) {
			return "does not keep the voters that decide now"
		}
		return ""
	}
	if n := votersChanged(&rules, &now.Config); n > 1 {
		return "changes several voters at once without a joint configuration"
	}
	var left []consensus.MemberID
	for _, id := range rules.IDs() {
		if !now.Config.Contains(id) {
			left = append(left, id)
		}
	}
	if !slices.Equal(now.Tombs, left) {
		return "buries others than those who leave"
	}
	return ""
}

// outline checks the form of an entry, whatever came before.
func outline(now *consensus.ConfigChange) string {
	c := &now.Config
	joint := c.IsJoint()
	switch {
	case !now.Protocol.Known():
		return "has an unknown protocol"
	case len(c.Voters) == 0:
		return "has no voter"
	case joint && now.Protocol == consensus.ProtocolSingle:
		return "is joint although its protocol is single"
	case !joint && len(c.LearnersNext) > 0:
		return "demotes voters later, but is not joint"
	case joint && now.Protocol == consensus.ProtocolActivate && !slices.Equal(now.Tombs, c.Retiring()):
		return "buries others than those who leave"
	case joint && now.Protocol != consensus.ProtocolActivate && len(now.Tombs) > 0:
		return "buries members before the second half of the change"
	}
	for _, id := range c.Learners {
		if c.IsVoter(id) {
			return "has a member that both votes and learns"
		}
	}
	return ""
}

// misfitAbort: only the two protocols whose second entry makes the change final have an abort.
func misfitAbort(before *change, now *consensus.ConfigChange) string {
	switch {
	case !before.half() || (before.protocol != consensus.ProtocolJoint && before.protocol != consensus.ProtocolJointEarly):
		return "aborts what cannot be aborted"
	case now.Config.IsJoint() || !slices.Equal(now.Config.Voters, before.config.Outgoing):
		return "does not go back to the voters before"
	case len(now.Tombs) > 0 || !slices.Equal(now.Config.IDs(), before.config.IDs()):
		return "aborts and removes somebody"
	}
	return ""
}

func votersChanged(a, b *consensus.Config) int {
	n := 0
	for _, id := range a.Voters {
		if !slices.Contains(b.Voters, id) {
			n++
		}
	}
	for _, id := range b.Voters {
		if !slices.Contains(a.Voters, id) {
			n++
		}
	}
	return n
}

// Proposed records that a member appended a configuration entry, and up to which index it knows its log to be committed. If it
// leads, that index covers an entry of its term (Ongaro's mail of 2015), and all of the change before, unless this entry is the
// second one of that change, or aborts it.
func (s *Suite) Proposed(member consensus.MemberID, position consensus.Position, commit consensus.Index) {
	if s.elections.leaders[position.Term] != member {
		return
	}
	w := s.logs.of(member)
	at := slices.IndexFunc(w.configs, func(c change) bool { return c.position() == position })
	if at < 0 {
		return
	}
	now, before := &w.configs[at], &w.floor
	if at > 0 {
		before = &w.configs[at-1]
	}
	if term, _ := w.term(commit); term != position.Term {
		s.report("configuration", "member %v appends configuration %v before an entry of its term has committed "+
			"(commit is %d.%d)", member, now.id, commit, term)
	}
	switch {
	case now.abort:
		if before.protocol == consensus.ProtocolJointEarly && w.knew >= before.id.Index {
			s.report("configuration", "member %v turns back %v by %v after %v was committed", member, before.id, now.id,
				before.protocol)
		}
	case before.half():
		if before.id.Index > commit || !s.decided(before) {
			s.report("configuration", "member %v leaves joint configuration %v, which is not committed (commit is %d)",
				member, before.id, commit)
		}
		if before.protocol == consensus.ProtocolApply && before.id.Index > w.applied {
			s.report("configuration", "member %v leaves joint configuration %v, which it has not applied", member, before.id)
		}
	case !before.doneAt(commit):
		s.report("configuration", "member %v appends configuration %v while the change to %v is under way (commit is %d)",
			member, now.id, before.id, commit)
	case before.id.Index > w.applied:
		s.report("configuration", "member %v appends configuration %v and has not applied %v", member, now.id, before.id)
	}
}
