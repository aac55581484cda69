package check

import "github.com/quorate/quorate/internal/consensus"

// elections checks election safety: at most one leader in a term, and its causes: at most one vote of a member in a term, also
// over restarts, and a majority of each set of the voters by which the leader counted.
type elections struct {
	leaders map[consensus.Term]consensus.MemberID
	votes   map[ballot]consensus.MemberID
	pending consensus.Term // term of a leader that was elected in the present step
}

type ballot struct {
	term  consensus.Term
	voter consensus.MemberID
}

func (e *elections) init() {
	e.leaders = map[consensus.Term]consensus.MemberID{}
	e.votes = map[ballot]consensus.MemberID{}
}

// Leader records that a member considers itself the leader of a term.
func (s *Suite) Leader(member consensus.MemberID, term consensus.Term) {
	if other, ok := s.elections.leaders[term]; ok && other != member {
		s.report("election-safety", "members %v and %v both lead term %d", other, member, term)
		return
	}
	if _, known := s.elections.leaders[term]; !known {
		s.elections.leaders[term] = member
		s.primary.led(member, term)
		s.logs.elected(s, member, term)
		s.removals.ruled(s, member, term)
		s.elections.pending = term
	}
}

// forget drops the terms that a crashed member led only in memory: a lone voter needs no other vote, and no other process knew
// of those terms.
func (e *elections) forget(member consensus.MemberID, durable consensus.Term) {
	for term, leader := range e.leaders {
		if leader == member && term > durable {
			delete(e.leaders, term)
		}
	}
}

// judge checks, once the configuration in force is known, that a new leader has the votes that it needs.
func (e *elections) judge(s *Suite, w *shadow, member consensus.MemberID) {
	term := e.pending
	if e.pending = 0; term == 0 {
		return
	}
	votes := func(id consensus.MemberID) bool { return id == member || e.votes[ballot{term, id}] == member }
	for _, config := range w.rulings() {
		if majorities(config, votes) {
			return
		}
	}
	s.report("election-safety", "member %v leads term %d without the votes of a majority of %v and of %v",
		member, term, w.told.config.Voters, w.told.config.Outgoing)
}

// majorities reports whether more than half of each set of voters has something.
func majorities(config *consensus.Config, has func(consensus.MemberID) bool) bool {
	for _, voters := range [][]consensus.MemberID{config.Voters, config.Outgoing} {
		n := 0
		for _, id := range voters {
			if has(id) {
				n++
			}
		}
		if len(voters) > 0 && n <= len(voters)/2 {
			return false
		}
	}
	return len(config.Voters) > 0
}

// sentVote is called with every granted vote that leaves a member.
func (e *elections) sentVote(s *Suite, m *consensus.Message) {
	at := ballot{m.Term, m.From}
	if other, ok := e.votes[at]; ok && other != m.To {
		s.report("election-safety", "member %v voted for %v and %v in term %d", m.From, other, m.To, m.Term)
	}
	e.votes[at] = m.To
}
