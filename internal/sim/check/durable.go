package check

import "github.com/quorate/quorate/internal/consensus"

// durable checks that a member promises only what its disk holds: it acknowledges an append, and grants a vote, after the sync
// that covers it; and synced data is there after a restart.
type durable struct {
	members map[consensus.MemberID]*platter
}

// platter is what a member's disk must hold.
type platter struct {
	hard    consensus.HardState
	log     image          // as of the last sync
	pending []request      // written since and not synced, oldest first
	term    consensus.Term // in memory
	cut     consensus.Term // in which the log was last truncated, or replaced by a snapshot
}

func (d *durable) init() { d.members = map[consensus.MemberID]*platter{} }

func (d *durable) of(member consensus.MemberID) *platter {
	p := d.members[member]
	if p == nil {
		p = &platter{}
		d.members[member] = p
	}
	return p
}

// Entered records the term that a member is in, in memory.
func (s *Suite) Entered(member consensus.MemberID, term consensus.Term) {
	s.durable.of(member).term = term
}

// Synced records that one persist request of a member is on disk.
func (s *Suite) Synced(member consensus.MemberID, hard *consensus.HardState, entries []consensus.Entry,
	reset *consensus.SnapshotMeta) {
	p, w := s.durable.of(member), s.logs.of(member)
	if hard != nil {
		if hard.Term < p.hard.Term || (hard.Term == p.hard.Term && p.hard.Vote != 0 && hard.Vote != p.hard.Vote) {
			s.report("durable-before-ack", "member %v: hard state goes from %+v to %+v", member, p.hard, *hard)
		}
		p.hard = *hard
		s.commits.learned(hard.Commit, hard.Term)
		w.known = max(w.known, min(hard.Commit, w.last()))
	}
	if reset != nil {
		p.log.apply(&request{reset: &reset.Position})
		p.shift()
	}
	if len(entries) > 0 {
		p.log.apply(requestOf(entries))
		p.shift()
	}
}

// Durable returns the index of the last entry on a member's disk.
func (s *Suite) Durable(member consensus.MemberID) consensus.Index {
	log := &s.durable.of(member).log
	return log.base.Index + consensus.Index(len(log.terms))
}

// LogBase returns the index after which a member's log begins.
func (s *Suite) LogBase(member consensus.MemberID) consensus.Index {
	return s.logs.of(member).base.Index
}

// shift drops the oldest pending request, which is synced now.
func (p *platter) shift() {
	if len(p.pending) > 0 {
		p.pending = p.pending[1:]
	}
}

// truncated is called when a member replaces its log from an index on.
func (d *durable) truncated(s *Suite, member consensus.MemberID, from consensus.Index) {
	p := d.of(member)
	p.cut = p.term
	if from <= consensus.Index(len(s.logs.chosen)) {
		if term, ok := s.logs.of(member).term(from); ok && term == s.logs.chosenAt(from) {
			s.report("leader-completeness", "member %v truncates committed entry %d.%d", member, from, term)
		}
	}
}

// Sent records that messages left a member.
func (s *Suite) Sent(messages []consensus.Message) {
	for i := range messages {
		m := &messages[i]
		p, w := s.durable.of(m.From), s.logs.of(m.From)
		w.known = max(w.known, m.Commit, m.Committed.Index)
		switch m.Kind {
		case consensus.MsgAppend, consensus.MsgHeartbeat:
			s.commits.announced(s, m)
			if p.hard.Term < m.Term {
				s.report("durable-before-ack", "member %v leads term %d, but its disk says %+v", m.From, m.Term, p.hard)
			}
		case consensus.MsgVote:
			if p.hard.Term < m.Term || (p.hard.Term == m.Term && p.hard.Vote != m.From) {
				s.report("durable-before-ack", "member %v asks for votes in term %d, but its disk says %+v",
					m.From, m.Term, p.hard)
			}
		case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgAcknowledged:
			if !m.Reject {
				s.acknowledgedAppend(m, p, w)
			}
		case consensus.MsgRecorded:
			s.fastPath.recorded(s, m)
		case consensus.MsgVoteReply:
			if m.Reject {
				continue
			}
			if p.hard.Term < m.Term || (p.hard.Term == m.Term && p.hard.Vote != m.To) {
				s.report("durable-before-ack", "member %v grants a vote in term %d to %v, but its disk says %+v",
					m.From, m.Term, m.To, p.hard)
			}
			s.elections.sentVote(s, m)
		}
	}
}

// Recovered records what a member found on its disk when it started again.
func (s *Suite) Recovered(member consensus.MemberID, hard consensus.HardState, base consensus.SnapshotMeta,
	entries []consensus.Entry, applied consensus.Index) {
	p, w := s.durable.of(member), s.logs.of(member)
	if hard.Term < p.hard.Term || (hard.Term == p.hard.Term && p.hard.Vote != 0 && hard.Vote != p.hard.Vote) {
		s.report("durable-before-ack", "member %v restarts with %+v after it had synced %+v", member, hard, p.hard)
	}
	last := base.Position.Index + consensus.Index(len(entries))
	found := image{base: base.Position, terms: requestOf(entries).terms}
	if !p.explains(&found) && !s.installed(&found, p) {
		s.report("durable-before-ack", "member %v restarts with a log %v that is neither what it had synced, %v, nor that "+
			"and a part of what was on its way", member, &found, &p.log)
	}
	s.logs.forget(w, hard.Term)
	s.primary.restarted(member)
	s.elections.forget(member, hard.Term)
	p.hard, p.log, p.term, p.cut = hard, found, hard.Term, 0
	s.commits.learned(hard.Commit, hard.Term)
	s.Permits.Reached(member, applied)
	applied = max(applied, base.Position.Index)
	*w = shadow{
		base: base.Position, floor: floorOf(&base), applied: applied, known: max(applied, min(hard.Commit, last)),
	}
	if base.Position.Index > 0 {
		s.judgeMeta(member, &base)
	}
	s.Appended(member, entries)
	p.pending = nil
}

// installed reports whether a snapshot that was installed before the crash explains an empty log: it replaces a log that does
// not hold its position, whatever the length of that log.
func (s *Suite) installed(found *image, p *platter) bool {
	if len(found.terms) > 0 || s.logs.chosenAt(found.base.Index) != found.base.Term {
		return false
	}
	term, ok := p.log.term(found.base.Index)
	return !ok || term != found.base.Term
}

// acknowledgedAppend checks an acknowledgement of entries: they are durable, and they equal those of the leader that gets it.
func (s *Suite) acknowledgedAppend(m *consensus.Message, p *platter, w *shadow) {
	if m.Term < p.cut {
		return // entries acknowledged in an earlier term may have been truncated since, even by the same write
	}
	// The entries of a snapshot are in the store, whether the log had them or begins after them.
	if durable := max(p.log.common(w), w.base.Index, w.applied); m.Match.Index > durable {
		s.report("durable-before-ack", "member %v acknowledges %d to %v, but only %d is durable",
			m.From, m.Match.Index, m.To, durable)
	}
	if m.Kind != consensus.MsgAppendReply || s.elections.leaders[m.Term] != m.To || s.durable.of(m.To).term != m.Term {
		return
	}
	mine, known := w.term(m.Match.Index)
	if theirs, ok := s.logs.of(m.To).term(m.Match.Index); ok && known && mine != theirs {
		s.report("log-matching", "member %v acknowledges %d.%d to leader %v of term %d, whose entry there has term %d",
			m.From, m.Match.Index, mine, m.To, m.Term, theirs)
	}
}
