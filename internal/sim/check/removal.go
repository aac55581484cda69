package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// removals checks when members may be notified of their removal, and so be switched off for good: the change that removes them
// is settled, that is, a majority of the new voters alone holds it durably, with all entries that are needed to know that it is
// in force. A removed member leads a later term only if its log holds that change, so that it needed the votes of the new
// voters, too, and only while it does not know that the change has committed: then it steps down.
type removals struct {
	tombs   map[consensus.MemberID]tombstone
	settled map[consensus.ConfigID]bool
	decided map[consensus.ConfigID]consensus.MemberID // members that reported that the change will not be aborted
	lineage []change                                  // the committed configurations, oldest first
}

// tombstone is the change that removed a member, and the term in which it was settled.
type tombstone struct {
	change consensus.Position
	term   consensus.Term
}

func (r *removals) init(base *consensus.SnapshotMeta) {
	r.tombs = map[consensus.MemberID]tombstone{}
	r.settled = map[consensus.ConfigID]bool{}
	r.decided = map[consensus.ConfigID]consensus.MemberID{}
	r.lineage = []change{floorOf(base)}
}

func floorOf(meta *consensus.SnapshotMeta) change {
	return change{
		id: meta.ConfigID, protocol: meta.Protocol, config: meta.Config.Clone(), tombs: slices.Clone(meta.Tombs),
		settled: !meta.Open,
	}
}

// Settled records that a member, in a term, reports a change as settled. It returns the members that the change removed, on the
// first report.
func (s *Suite) Settled(member consensus.MemberID, id consensus.ConfigID, term consensus.Term) []consensus.MemberID {
	c, next := s.logs.of(member).find(id)
	if c == nil || s.removals.settled[id] {
		return nil
	}
	s.removals.settled[id] = true
	if next != nil && next.abort {
		c = next // aborted: the abort's change counts
	}
	voters := c.config.Settle()
	if !s.durableOnMajorities(&voters, c.position()) {
		s.report("settled", "member %v calls configuration %v settled, which is not durable on a majority of %v",
			member, c.id, voters.Voters)
	}
	if c.needsNotice() && !c.settled {
		notice, ok := s.logs.of(member).term(c.settledBy)
		if c.settledBy == 0 || !ok || !s.durableOnMajorities(&voters, consensus.Position{Index: c.settledBy, Term: notice}) {
			s.report("settled", "member %v calls configuration %v settled, but no majority of %v holds an entry that says so",
				member, c.id, voters.Voters)
		}
	}
	if c.half() && (next == nil || !s.decided(next)) {
		s.report("settled", "member %v calls configuration %v settled, which is half of a change", member, c.id)
	}
	for _, gone := range c.tombs {
		if _, known := s.removals.tombs[gone]; !known {
			s.removals.tombs[gone] = tombstone{c.position(), term}
		}
	}
	return c.tombs
}

// Decided records that a member reported that a joint configuration will not be aborted.
func (s *Suite) Decided(member consensus.MemberID, id consensus.ConfigID) {
	s.removals.decided[id] = member
	lineage := s.removals.lineage
	for i := 1; i < len(lineage); i++ {
		s.removals.turnedBack(s, &lineage[i-1], &lineage[i])
	}
}

func (r *removals) turnedBack(s *Suite, before, now *change) {
	if teller, ok := r.decided[before.id]; ok && now.abort {
		s.report("settled", "member %v said that the change to %v is decided, which %v turned back", teller, before.id, now.id)
	}
}

// EachChange calls do for each change in the committed log; the second entry of a joint change is no change of its own.
func (s *Suite) EachChange(do func(protocol consensus.Protocol, abort bool)) {
	lineage := s.removals.lineage
	for i := 1; i < len(lineage); i++ {
		if c := &lineage[i]; c.abort || !lineage[i-1].half() {
			do(c.protocol, c.abort)
		}
	}
}

// SettledChanges counts the configurations that were settled.
func (s *Suite) SettledChanges() int { return len(s.removals.settled) }

// Removed records that a member was notified of its removal, and is going to stop for good.
func (s *Suite) Removed(member consensus.MemberID) {
	if _, gone := s.removals.tombs[member]; !gone {
		s.report("settled", "member %v is told that it was removed, which no settled change did", member)
	}
}

// ruled checks a new leader that was removed in an earlier term.
func (r *removals) ruled(s *Suite, member consensus.MemberID, term consensus.Term) {
	tomb, gone := r.tombs[member]
	if !gone || term <= tomb.term {
		return
	}
	w := s.logs.of(member)
	got, known := w.term(tomb.change.Index)
	switch {
	case known && got != tomb.change.Term || tomb.change.Index > w.last():
		s.report("election-safety", "member %v leads term %d without the change %v that removed it, settled in term %d",
			member, term, tomb.change, tomb.term)
	case w.known >= tomb.change.Index:
		s.report("election-safety", "member %v leads term %d and knows that the change %v, settled in term %d, removed it",
			member, term, tomb.change, tomb.term)
	}
}

// goneBefore reports whether a member was removed for ever by the log before an entry. An entry of an earlier term may be that
// of a leader that did not know of the removal.
func (r *removals) goneBefore(member consensus.MemberID, entry consensus.Position) bool {
	tomb, gone := r.tombs[member]
	return gone && entry.Index > tomb.change.Index && entry.Term >= tomb.term
}

// configCommitted follows the configurations that members have applied.
func (s *Suite) configCommitted(e *consensus.Entry) {
	r := &s.removals
	last := &r.lineage[len(r.lineage)-1]
	switch {
	case e.Index <= max(last.id.Index, last.settledBy):
	case e.Kind == consensus.EntryNoop && len(e.Payload) > 0:
		if id, err := consensus.DecodeConfigID(e.Payload); err == nil && id.Index == last.id.Index {
			last.settledBy = max(last.settledBy, e.Index)
		}
	case e.Kind == consensus.EntryConfig:
		if now, err := consensus.DecodeConfigChange(e.Payload); err == nil {
			r.lineage = append(r.lineage, change{
				id: consensus.ConfigID{Index: e.Index, Term: e.Term}, protocol: now.Protocol, abort: now.Abort,
				config: now.Config.Clone(), tombs: slices.Clone(now.Tombs),
			})
			n := len(r.lineage)
			r.turnedBack(s, &r.lineage[n-2], &r.lineage[n-1])
		}
	}
}

// CommittedConfig returns the configuration in force by the newest configuration entry that any member applied.
func (s *Suite) CommittedConfig() *consensus.Config {
	last := &s.removals.lineage[len(s.removals.lineage)-1]
	if !last.activates() {
		return &last.config
	}
	settled := last.config.Settle()
	return &settled
}

// judgeMeta checks a member's configuration for an index of the committed log.
func (s *Suite) judgeMeta(member consensus.MemberID, meta *consensus.SnapshotMeta) {
	if len(meta.Config.Members) == 0 {
		return // it has joined, and its log does not reach to the first configuration yet
	}
	lineage := s.removals.lineage
	at := len(lineage) - 1
	for at > 0 && lineage[at].id.Index > meta.Position.Index {
		at--
	}
	want := &lineage[at]
	open := !want.doneAt(meta.Position.Index)
	if meta.ConfigID != want.id || meta.Protocol != want.protocol || meta.Open != open ||
		!sameRoles(&meta.Config, &want.config) || (open && !slices.Equal(meta.Tombs, want.tombs)) {
		s.report("configuration", "member %v says that at %v configuration %v by %v holds, %v, open %t, leaving %v; "+
			"the log says %v by %v, %v, open %t, leaving %v",
			member, meta.Position, meta.ConfigID, meta.Protocol, roles(&meta.Config), meta.Open, meta.Tombs,
			want.id, want.protocol, roles(&want.config), open, want.tombs)
	}
}

// Stored records the configuration in a member's store, and the removed members there.
func (s *Suite) Stored(member consensus.MemberID, meta *consensus.SnapshotMeta, gone []consensus.MemberID) {
	s.judgeMeta(member, meta)
	var want []consensus.MemberID
	for i := range s.removals.lineage {
		if c := &s.removals.lineage[i]; c.id.Index <= meta.Position.Index && c.doneAt(meta.Position.Index) {
			want = append(want, c.tombs...)
		}
	}
	slices.Sort(want)
	if !slices.Equal(slices.Compact(want), gone) {
		s.report("configuration", "member %v has tombstones of %v at %v, the log of %v", member, gone, meta.Position, want)
	}
}
