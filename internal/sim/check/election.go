package check

import "github.com/quorate/quorate/internal/consensus"

// elections checks election safety: at most one leader in a term, and its cause: at most one vote of a member in a
// term, whatever restarts lie between.
type elections struct {
	leaders map[consensus.Term]consensus.MemberID
	votes   map[ballot]consensus.MemberID
}

type ballot struct {
	term  consensus.Term
	voter consensus.MemberID
}

func (e *elections) init() {
	e.leaders = map[consensus.Term]consensus.MemberID{}
	e.votes = map[ballot]consensus.MemberID{}
}

// Leader tells that a member considers itself the leader of a term.
func (s *Suite) Leader(member consensus.MemberID, term consensus.Term) {
	if other, ok := s.elections.leaders[term]; ok && other != member {
		s.report("election-safety", "members %v and %v both lead term %d", other, member, term)
		return
	}
	if _, known := s.elections.leaders[term]; !known {
		s.elections.leaders[term] = member
		s.logs.elected(s, member, term)
	}
}

// sentVote is told of every granted vote that leaves a member.
func (e *elections) sentVote(s *Suite, m *consensus.Message) {
	at := ballot{m.Term, m.From}
	if other, ok := e.votes[at]; ok && other != m.To {
		s.report("election-safety", "member %v voted for %v and %v in term %d", m.From, other, m.To, m.Term)
	}
	e.votes[at] = m.To
}
