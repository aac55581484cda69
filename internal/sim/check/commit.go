package check

import "github.com/quorate/quorate/internal/consensus"

// commits checks the commit rule where it is used: when a leader moves the cluster's commit index forward, the entry
// there is of its own term (Raft paper, 5.4.2 and figure 8), and durable on a majority of each set of its voters.
type commits struct {
	known   consensus.Index
	terms   []consensus.Term // in which index i+1 was committed, or later ones
	pending []commit         // to be judged at the end of the step, when the log is known that the leader counted by
}

type commit struct {
	leader   consensus.MemberID
	position consensus.Position
}

// announced is told of every commit index that leaves a leader.
func (c *commits) announced(s *Suite, m *consensus.Message) {
	if m.Commit <= c.known {
		return
	}
	c.learned(m.Commit, m.Term)
	w := s.logs.of(m.From)
	term, ok := w.term(m.Commit)
	if !ok {
		return
	}
	if term != m.Term {
		s.report("commit-rule", "member %v, leader of term %d, commits %d of term %d by counting", m.From, m.Term,
			m.Commit, term)
		return
	}
	c.pending = append(c.pending, commit{m.From, consensus.Position{Index: m.Commit, Term: term}})
}

// Committed tells how far a member says, after a step from one term to another, or within one, that the log is committed.
// Beyond what a leader announced it must have counted by itself: that far, or further, an entry of its term is durable on
// a majority.
func (s *Suite) Committed(member consensus.MemberID, from, term consensus.Term, index consensus.Index) {
	if index <= s.commits.known {
		return
	}
	s.commits.learned(index, term)
	w := s.logs.of(member)
	for ; index <= w.last(); index++ {
		if got, ok := w.term(index); ok && (got == term || got == from) && len(w.lastChange().config.Voters) > 0 {
			s.judgeMajorities(member, consensus.Position{Index: index, Term: got}, w.anyRuling())
			return
		}
	}
	s.report("commit-rule", "member %v, in term %d, takes %d for committed, with no entry of the term from there on", member,
		term, s.commits.known)
}

// anyRuling lists the configurations by which a member may have counted lately.
func (w *shadow) anyRuling() []*consensus.Config {
	var configs []*consensus.Config
	for _, change := range w.changes() {
		settled := change.config.Settle()
		configs = append(configs, &change.config, &settled)
	}
	return configs
}

// Stepped tells that a member has done all that one of its steps put out.
func (s *Suite) Stepped(member consensus.MemberID) {
	w := s.logs.of(member)
	s.elections.judge(s, w, member)
	s.Released()
	s.judgeRuling(member, w)
	w.was, w.knew = w.told, w.known
}

// Released tells that messages which waited for the disk have left.
func (s *Suite) Released() {
	for _, c := range s.commits.pending {
		s.judgeCommit(c.leader, c.position)
	}
	s.commits.pending = s.commits.pending[:0]
}

func (s *Suite) judgeCommit(leader consensus.MemberID, position consensus.Position) {
	w := s.logs.of(leader)
	s.judgeMajorities(leader, position, w.rulings())
}

// acted is told how far a member has applied. A leader need not have said that it committed so much; nor need the
// configuration by which it counted then be in force any more.
func (c *commits) acted(s *Suite, member consensus.MemberID, index consensus.Index) {
	if index <= c.known {
		return
	}
	c.learned(index, s.durable.of(member).term)
	w := s.logs.of(member)
	if term, ok := w.term(index); ok && len(w.lastChange().config.Voters) > 0 {
		s.judgeMajorities(member, consensus.Position{Index: index, Term: term}, w.anyRuling())
	}
}

func (s *Suite) judgeMajorities(leader consensus.MemberID, position consensus.Position, configs []*consensus.Config) {
	w := s.logs.of(leader)
	for _, config := range configs {
		if s.durableOnMajorities(config, position) {
			return
		}
	}
	s.report("commit-rule", "member %v commits %v, which is not durable on a majority of voters %v and of %v", leader, position,
		w.told.config.Voters, w.told.config.Outgoing)
}

func (s *Suite) durableOnMajorities(config *consensus.Config, position consensus.Position) bool {
	return majorities(config, func(id consensus.MemberID) bool {
		got, ok := s.logs.of(id).term(position.Index)
		return s.durable.of(id).log.holds(position) && (!ok || got == position.Term)
	})
}

// learned is told of a commit index that somebody knows, in a term.
func (c *commits) learned(index consensus.Index, term consensus.Term) {
	c.known = max(c.known, index)
	for consensus.Index(len(c.terms)) < index {
		c.terms = append(c.terms, term)
	}
}

// in returns in which term an index was committed, or a later one.
func (c *commits) in(index consensus.Index) consensus.Term {
	if index > consensus.Index(len(c.terms)) {
		return 0
	}
	return c.terms[index-1]
}
