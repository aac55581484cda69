package check

import "github.com/quorate/quorate/internal/consensus"

// durable checks that a member promises only what its disk holds: an append is acknowledged, and a vote granted, after
// the sync that covers it; and what was synced is there after a restart.
type durable struct {
	members map[consensus.MemberID]*platter
}

// platter is what a member's disk must hold.
type platter struct {
	hard   consensus.HardState
	synced consensus.Index // up to here the shadow log is durable
	term   consensus.Term  // in memory
	cut    consensus.Term  // in which the log was truncated last
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

// Entered tells which term a member is in, in memory.
func (s *Suite) Entered(member consensus.MemberID, term consensus.Term) {
	s.durable.of(member).term = term
}

// Synced tells that one persist request of a member is on disk.
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
		p.synced = reset.Mark.Index
	}
	if n := len(entries); n > 0 {
		p.synced = entries[0].Index - 1
		// Some of them may have been truncated again while the write was under way.
		for i := range entries {
			if term, ok := w.term(entries[i].Index); ok && term != entries[i].Term {
				break
			}
			p.synced = entries[i].Index
		}
	}
}

// truncated is told that a member replaces its log from an index on.
func (d *durable) truncated(s *Suite, member consensus.MemberID, from consensus.Index) {
	p := d.of(member)
	p.cut = p.term
	if p.synced >= from {
		p.synced = from - 1
	}
	if from <= consensus.Index(len(s.logs.chosen)) {
		if term, ok := s.logs.of(member).term(from); ok && term == s.logs.chosenAt(from) {
			s.report("leader-completeness", "member %v truncates committed entry %d.%d", member, from, term)
		}
	}
}

// Sent tells that messages left a member.
func (s *Suite) Sent(messages []consensus.Message) {
	for i := range messages {
		m := &messages[i]
		p, w := s.durable.of(m.From), s.logs.of(m.From)
		w.known = max(w.known, m.Commit)
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
		case consensus.MsgAppendReply, consensus.MsgHolds:
			// What was acknowledged in an earlier term may have been truncated since, by the same write even.
			if !m.Reject && m.Mark.Index > p.synced && m.Term >= p.cut {
				s.report("durable-before-ack", "member %v acknowledges %d to %v, but only %d is durable",
					m.From, m.Mark.Index, m.To, p.synced)
			}
		case consensus.MsgRecorded:
			s.won.recorded(s, m)
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

// Recovered tells what a member found on its disk when it started again.
func (s *Suite) Recovered(member consensus.MemberID, hard consensus.HardState, base consensus.SnapshotMeta,
	entries []consensus.Entry, applied consensus.Index) {
	p, w := s.durable.of(member), s.logs.of(member)
	if hard.Term < p.hard.Term || (hard.Term == p.hard.Term && p.hard.Vote != 0 && hard.Vote != p.hard.Vote) {
		s.report("durable-before-ack", "member %v restarts with %+v after it had synced %+v", member, hard, p.hard)
	}
	last := base.Mark.Index + consensus.Index(len(entries))
	if last < p.synced {
		s.report("durable-before-ack", "member %v restarts with a log up to %d after it had synced %d",
			member, last, p.synced)
	}
	for i := range entries {
		if want, ok := w.term(entries[i].Index); ok && entries[i].Index <= p.synced && want != entries[i].Term {
			s.report("durable-before-ack", "member %v restarts with %v where it had synced term %d",
				member, entries[i].Mark(), want)
			break
		}
	}
	s.logs.forget(w, hard.Term)
	s.elections.forget(member, hard.Term)
	p.hard, p.synced, p.term, p.cut = hard, last, hard.Term, 0
	s.commits.learned(hard.Commit, hard.Term)
	applied = max(applied, base.Mark.Index)
	*w = shadow{
		base: base.Mark, floor: floorOf(&base), applied: applied, known: max(applied, min(hard.Commit, last)),
	}
	if base.Mark.Index > 0 {
		s.judgeMeta(member, &base)
	}
	s.Appended(member, entries)
}
