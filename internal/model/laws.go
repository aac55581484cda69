package model

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// The laws are those of the fast path (docs/simulation.md lists L1 to L7), and those of Raft: election safety, leader
// completeness, log matching up to the acknowledged and committed index, state machine safety. A finding begins with the name
// of its law.

// report notes that a proposal was reported to its proposer as successful.
func (s *State) report(proposal, revision int8, res result) string {
	s.Reported |= Bit(proposal)
	s.Revision[proposal], s.Result[proposal] = revision, res
	if revision <= s.Floor[proposal] {
		return fmt.Sprintf("L3: P%d reported at revision %d after revision %d had been reported before it was invoked",
			proposal, revision, s.Floor[proposal])
	}
	if Has(s.Aborted, proposal) {
		return fmt.Sprintf("L7: P%d reported at revision %d after it was reported aborted", proposal, revision)
	}
	return ""
}

// laws check every state.
type laws struct {
	machine
	electorate
	members int
}

// check checks the laws that must hold in every state, as far as an action can have broken them.
func (m *laws) check(s *State, a Action) string {
	bad := ""
	switch a.Kind {
	case Commit, Infer, Decide, Answer, Survive:
		bad = m.checkCommitted(s)
	case Receive:
		bad = m.checkLog(s, a.B)
	case Vote, PreVote, Snapshot:
		if bad = m.checkLog(s, a.B); bad == "" {
			bad = m.checkLog(s, a.A)
		}
	case Apply:
		bad = m.checkApplied(s, a.A)
	}
	if bad != "" || s.Reported == 0 {
		return bad
	}
	switch a.Kind {
	case Commit, Decide, Answer, Receive, Vote, Campaign, Infer, Survive:
		return m.checkOpenLeaders(s)
	}
	return ""
}

// checkCommitted compares the reported proposals with the committed log.
func (m *laws) checkCommitted(s *State) string {
	st := m.StoreAt(&s.Committed, s.Committed.N)
	if st.Bad != "" {
		return st.Bad
	}
	for p := range int8(MaxProposals) {
		r := &st.Rows[p]
		if r.Done && Has(s.Aborted, p) {
			return fmt.Sprintf("L7: P%d reported aborted and applied at revision %d", p, r.Revision)
		}
		if r.Done && r.Revision <= s.Floor[p] {
			return fmt.Sprintf("L3: P%d applied at revision %d after revision %d had been reported before it was invoked",
				p, r.Revision, s.Floor[p])
		}
		if !Has(s.Reported, p) {
			continue
		}
		if r.Done && !m.asReported(s, r, p) {
			return fmt.Sprintf("L1: P%d reported at revision %d with result %v, applied at revision %d with result %v",
				p, s.Revision[p], s.Result[p], r.Revision, r.Result)
		}
		if !r.Done && st.Revision >= s.Revision[p] {
			return fmt.Sprintf("L1: P%d reported at revision %d, the committed log passes that revision without it",
				p, s.Revision[p])
		}
	}
	return ""
}

func (m *laws) asReported(s *State, r *row, p int8) bool {
	return r.Done && r.Revision == s.Revision[p] && (Has(s.Loose, p) || r.Result == s.Result[p])
}

// checkLog compares a member's log with the committed log, and with the log of its leader that it acknowledged.
func (m *laws) checkLog(s *State, i int8) string {
	x := &s.M[i]
	if Has(s.Dead, i) {
		return ""
	}
	if x.Commit > s.Committed.N || x.Log.shared(&s.Committed) < x.Commit {
		return fmt.Sprintf("log matching: %s takes for committed up to index %d what is not", memberName(i), x.Commit)
	}
	if n := s.Acked[x.Term][i]; s.LeaderOf[x.Term] >= 0 && x.Role != Leader && x.Log.shared(&s.TermLog[x.Term]) < n {
		return fmt.Sprintf("log matching: %s acknowledged the log of term %d up to index %d and holds another one",
			memberName(i), x.Term, n)
	}
	return ""
}

// checkApplied compares a member's store with that of the committed log.
func (m *laws) checkApplied(s *State, i int8) string {
	x := &s.M[i]
	if x.Applied > s.Committed.N || x.Log.shared(&s.Committed) < x.Applied {
		return fmt.Sprintf("state machine safety: %s applied what is not committed", memberName(i))
	}
	if x.RowsLost == 0 {
		return ""
	}
	own, want := m.Applied(x), m.StoreAt(&s.Committed, x.Applied)
	if own.Revision != want.Revision || own.Changed != want.Changed || own.Bad != "" {
		return fmt.Sprintf("state machine safety: %s is at revision %d, its log says %d", memberName(i), own.Revision,
			want.Revision)
	}
	return ""
}

// checkOpenLeaders checks that each leader that may serve a read now has every reported proposal, with its revision and result:
// a leader whose no-op has committed and whose term a quorum is in. It finds most faults an election earlier than checkApplied.
func (m *laws) checkOpenLeaders(s *State) string {
	for i := range int8(m.members) {
		x := &s.M[i]
		if !x.open() || Has(s.Dead, i) || !m.inOffice(s, i) {
			continue
		}
		st := m.StoreAt(&x.Log, x.Log.N)
		for p := range int8(MaxProposals) {
			r := &st.Rows[p]
			if !Has(s.Reported, p) || m.asReported(s, r, p) {
				continue
			}
			how := "lacks it"
			if r.Done {
				how = fmt.Sprintf("has it at revision %d with result %v", r.Revision, r.Result)
			}
			return fmt.Sprintf("L1: P%d reported at revision %d with result %v; leader %s of term %d, open for reads, %s",
				p, s.Revision[p], s.Result[p], memberName(i), x.Term, how)
		}
	}
	return ""
}

// inOffice reports whether a quorum of a leader's configuration is in its term.
func (m *laws) inOffice(s *State, i int8) bool {
	x := &s.M[i]
	var in uint8
	for k := range int8(m.members) {
		if s.M[k].Term == x.Term && !Has(s.Dead, k) {
			in |= Bit(k)
		}
	}
	at, _ := m.Config(&x.Log)
	return m.Quorum(at, in)
}

// checkL5 checks that the configuration of a fast success is on the disks of a superquorum.
func (m *laws) checkL5(s *State, t *attempt) string {
	if t.ID == (configID{}) {
		return ""
	}
	var in uint8
	for k := range int8(m.members) {
		l := &s.M[k].Log
		for i := range l.N {
			e := &l.E[i]
			if e.Kind == ConfigEntry && e.Proposal == t.Config && (m.electorate.rules[rules.ReuseConfigIDs] ||
				t.ID == configID{i + 1, e.Term}) {
				in |= Bit(k)
			}
		}
	}
	c := m.configs[t.Config]
	for _, set := range []uint8{c.Old, c.New} {
		if set != 0 && Count(in&set) < quorum.Super(Count(set)) {
			return fmt.Sprintf("L5: P%d succeeds on the fast path under configuration %v, which only %s hold durably",
				t.Proposal, c, memberNames(in))
		}
	}
	return ""
}

// checkRead checks L6: a read sees all writes that were reported before it began.
func (m *laws) checkRead(s *State, x *member) string {
	st := m.Applied(x)
	for p := range int8(MaxProposals) {
		if Has(s.R.Must, p) && !st.Rows[p].Done {
			return fmt.Sprintf("L6: a linearizable read at %s misses P%d, reported before it", memberName(s.R.Reader), p)
		}
	}
	if st.Revision < s.R.Floor {
		return fmt.Sprintf("L6: a linearizable read at %s shows revision %d after %d was reported", memberName(s.R.Reader),
			st.Revision, s.R.Floor)
	}
	return ""
}
