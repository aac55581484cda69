package check

import "github.com/quorate/quorate/internal/consensus"

// commits checks the commit rule where it is used: when a leader moves the cluster's commit index forward, the entry
// there is of its own term (Raft paper, 5.4.2 and figure 8), and durable on a majority of each set of its voters.
type commits struct {
	known   consensus.Index
	pending []commit // to be judged at the end of the step, when the log is known that the leader counted by
}

type commit struct {
	leader consensus.MemberID
	mark   consensus.Mark
}

// announced is told of every commit index that leaves a leader.
func (c *commits) announced(s *Suite, m *consensus.Message) {
	if m.Commit <= c.known {
		return
	}
	c.known = m.Commit
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
	c.pending = append(c.pending, commit{m.From, consensus.Mark{Index: m.Commit, Term: term}})
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
		s.judgeCommit(c.leader, c.mark)
	}
	s.commits.pending = s.commits.pending[:0]
}

func (s *Suite) judgeCommit(leader consensus.MemberID, mark consensus.Mark) {
	w := s.logs.of(leader)
	for _, config := range w.rulings() {
		if s.durableOnMajorities(config, mark) {
			return
		}
	}
	s.report("commit-rule", "member %v commits %v, which is not durable on a majority of voters %v and of %v", leader, mark,
		w.told.config.Voters, w.told.config.Outgoing)
}

func (s *Suite) durableOnMajorities(config *consensus.Config, mark consensus.Mark) bool {
	return majorities(config, func(id consensus.MemberID) bool {
		got, ok := s.logs.of(id).term(mark.Index)
		return s.durable.of(id).synced >= mark.Index && (!ok || got == mark.Term)
	})
}

// learned is told of a commit index that a member has on its disk.
func (c *commits) learned(index consensus.Index) { c.known = max(c.known, index) }
