package check

import "github.com/quorate/quorate/internal/consensus"

// commits checks the commit rule where it is used: when a leader advances the cluster's commit index, the entry there is of its
// own term (Raft paper, 5.4.2 and figure 8), and durable on a majority of each set of its voters.
type commits struct {
	known   consensus.Index
	terms   []consensus.Term // the term in which index i+1, or a later one, was committed
	pending []commit         // judged at the end of the step, when the log by which the leader counted is known
}

type commit struct {
	leader   consensus.MemberID
	position consensus.Position
}

// announced is called with every message of a leader that carries a commit index.
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

// Committed records up to which index a member considers the log committed, after a step from one term to another, or within
// one. Beyond the index that a leader announced the member must have counted by itself: an entry of its term at that index, or
// a later one, is durable on a majority.
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

// Stepped records that a member has performed all outputs of one of its steps.
func (s *Suite) Stepped(member consensus.MemberID) {
	w := s.logs.of(member)
	s.elections.judge(s, w, member)
	s.Released()
	s.judgeRuling(member, w)
	w.was, w.knew = w.told, w.known
}

// Released records that messages that waited for the disk have been sent.
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

// acted is called with the index up to which a member has applied. No leader need have announced that index, and the
// configuration by which a leader counted need not be in force any more.
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

// learned is called with a commit index that a member knows, in a term.
func (c *commits) learned(index consensus.Index, term consensus.Term) {
	c.known = max(c.known, index)
	for consensus.Index(len(c.terms)) < index {
		c.terms = append(c.terms, term)
	}
}

// in returns the term in which an index, or a later one, was committed.
func (c *commits) in(index consensus.Index) consensus.Term {
	if index > consensus.Index(len(c.terms)) {
		return 0
	}
	return c.terms[index-1]
}
