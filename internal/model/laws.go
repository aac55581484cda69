package model

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/consensus/quorum"
)

// The laws are those of the fast path (docs/simulation.md lists L1 to L7), and Raft's: election safety, leader completeness,
// log matching below what is acknowledged and committed, state machine safety. A finding begins with the name of its law.

// report notes that a proposer was told of success.
func (s *state) report(proposal, revision int8, res result) string {
	s.Reported |= bit(proposal)
	s.Revision[proposal], s.Result[proposal] = revision, res
	if revision <= s.Floor[proposal] {
		return fmt.Sprintf("L3: P%d reported at revision %d after revision %d had been reported before it was invoked",
			proposal, revision, s.Floor[proposal])
	}
	if has(s.Aborted, proposal) {
		return fmt.Sprintf("L7: P%d reported at revision %d after it was reported aborted", proposal, revision)
	}
	return ""
}

// law is the name with which a finding begins.
func law(finding string) string {
	name, _, _ := strings.Cut(finding, ":")
	return name
}

// laws are what every state is checked for.
type laws struct {
	machine
	electorate
	members int
}

// check looks at what must hold in every state, as far as an action can have changed it.
func (m *laws) check(s *state, a action) string {
	bad := ""
	switch a.Kind {
	case commit, infer, decide, answer, survive:
		bad = m.checkCommitted(s)
	case receive:
		bad = m.checkLog(s, a.B)
	case vote, preVote, snapshot:
		if bad = m.checkLog(s, a.B); bad == "" {
			bad = m.checkLog(s, a.A)
		}
	case apply:
		bad = m.checkApplied(s, a.A)
	}
	if bad != "" || s.Reported == 0 {
		return bad
	}
	switch a.Kind {
	case commit, decide, answer, receive, vote, campaign, infer, survive:
		return m.checkOpenLeaders(s)
	}
	return ""
}

// checkCommitted compares what was reported with the committed log.
func (m *laws) checkCommitted(s *state) string {
	st := m.storeAt(&s.Committed, s.Committed.N)
	if st.Bad != "" {
		return st.Bad
	}
	for p := range int8(maxProposals) {
		r := &st.Rows[p]
		if r.Done && has(s.Aborted, p) {
			return fmt.Sprintf("L7: P%d reported aborted and applied at revision %d", p, r.Revision)
		}
		if r.Done && r.Revision <= s.Floor[p] {
			return fmt.Sprintf("L3: P%d applied at revision %d after revision %d had been reported before it was invoked",
				p, r.Revision, s.Floor[p])
		}
		if !has(s.Reported, p) {
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

func (m *laws) asReported(s *state, r *row, p int8) bool {
	return r.Done && r.Revision == s.Revision[p] && (has(s.Loose, p) || r.Result == s.Result[p])
}

// checkLog compares a member's log with what is committed, and with what it acknowledged to its leader.
func (m *laws) checkLog(s *state, i int8) string {
	x := &s.M[i]
	if has(s.Dead, i) {
		return ""
	}
	if x.Commit > s.Committed.N || x.Log.shared(&s.Committed) < x.Commit {
		return fmt.Sprintf("log matching: %s takes for committed up to index %d what is not", memberName(i), x.Commit)
	}
	if n := s.Acked[x.Term][i]; s.LeaderOf[x.Term] >= 0 && x.Role != leader && x.Log.shared(&s.TermLog[x.Term]) < n {
		return fmt.Sprintf("log matching: %s acknowledged the log of term %d up to index %d and holds another one",
			memberName(i), x.Term, n)
	}
	return ""
}

// checkApplied compares a member's store with that of the committed log.
func (m *laws) checkApplied(s *state, i int8) string {
	x := &s.M[i]
	if x.Applied > s.Committed.N || x.Log.shared(&s.Committed) < x.Applied {
		return fmt.Sprintf("state machine safety: %s applied what is not committed", memberName(i))
	}
	if x.RowsLost == 0 {
		return ""
	}
	own, want := m.applied(x), m.storeAt(&s.Committed, x.Applied)
	if own.Revision != want.Revision || own.Changed != want.Changed || own.Bad != "" {
		return fmt.Sprintf("state machine safety: %s is at revision %d, its log says %d", memberName(i), own.Revision,
			want.Revision)
	}
	return ""
}

// checkOpenLeaders wants every reported proposal, with its revision and result, on each leader that may serve a read now:
// its no-op has committed and a quorum is in its term. It finds most faults an election earlier than the applied state.
func (m *laws) checkOpenLeaders(s *state) string {
	for i := range int8(m.members) {
		x := &s.M[i]
		if !x.open() || has(s.Dead, i) || !m.inOffice(s, i) {
			continue
		}
		st := m.storeAt(&x.Log, x.Log.N)
		for p := range int8(maxProposals) {
			r := &st.Rows[p]
			if !has(s.Reported, p) || m.asReported(s, r, p) {
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
func (m *laws) inOffice(s *state, i int8) bool {
	x := &s.M[i]
	var in uint8
	for k := range int8(m.members) {
		if s.M[k].Term == x.Term && !has(s.Dead, k) {
			in |= bit(k)
		}
	}
	at, _ := m.config(&x.Log)
	return m.quorum(at, in)
}

// checkL5 wants the configuration of a fast success on the disks of a superquorum.
func (m *laws) checkL5(s *state, t *attempt) string {
	if m.electorate.rules[UncheckedL5] || t.ID == (configID{}) {
		return ""
	}
	var in uint8
	for k := range int8(m.members) {
		l := &s.M[k].Log
		for i := range l.N {
			e := &l.E[i]
			if e.Kind == configEntry && e.Proposal == t.Config && (m.electorate.rules[ConfigIDCounts] ||
				t.ID == configID{i + 1, e.Term}) {
				in |= bit(k)
			}
		}
	}
	c := m.configs[t.Config]
	for _, set := range []uint8{c.Old, c.New} {
		if set != 0 && count(in&set) < quorum.Super(count(set)) {
			return fmt.Sprintf("L5: P%d succeeds on the fast path under configuration %v, which only %s hold durably",
				t.Proposal, c, memberNames(in))
		}
	}
	return ""
}

// checkRead is L6.
func (m *laws) checkRead(s *state, x *member) string {
	st := m.applied(x)
	for p := range int8(maxProposals) {
		if has(s.R.Must, p) && !st.Rows[p].Done {
			return fmt.Sprintf("L6: a linearizable read at %s misses P%d, reported before it", memberName(s.R.Reader), p)
		}
	}
	if st.Revision < s.R.Floor {
		return fmt.Sprintf("L6: a linearizable read at %s shows revision %d after %d was reported", memberName(s.R.Reader),
			st.Revision, s.R.Floor)
	}
	return ""
}
