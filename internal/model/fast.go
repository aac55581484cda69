package model

import "github.com/quorate/quorate/internal/consensus/rules"

// send makes the messages of an attempt.
func (m *Model) send(s *State, a Action) (bool, string) {
	t, v := &s.A[a.A], &s.M[a.D]
	if t.Used || a.M > 0 && m.Scenario.Lies[a.B] == 0 || Has(s.Reported|s.Aborted, a.B) || v.Term == 0 || a.C >= maxRevision-4 {
		return false, ""
	}
	at, id := m.Config(&v.Log)
	*t = attempt{Used: true, Proposal: a.B, Payload: int8(a.M), Revision: a.C, Term: v.Term, ID: id, Config: at}
	if !Has(s.Invoked, a.B) {
		s.Invoked |= Bit(a.B)
		s.Floor[a.B] = s.highest()
	}
	return true, ""
}

// highest is the largest reported revision.
func (s *State) highest() (top int8) {
	for p := range int8(MaxProposals) {
		if Has(s.Reported, p) {
			top = max(top, s.Revision[p])
		}
	}
	return top
}

// meeting are the conditions of acceptance that a mutation drops.
type meeting struct{ noLogID, noLogKeys, noPoolKeys, noLogOrder, noPoolOrder bool }

// conflict reports whether an attempt must not be accepted: its keys or its revision conflict with entries and records that the
// member has not applied.
func (m *Model) conflict(s *State, x *member, t *attempt, drop meeting) bool {
	keys := m.keys(t.Proposal, t.Payload)
	for i := x.Applied; i < x.Log.N && !drop.noLogKeys; i++ {
		e := &x.Log.E[i]
		same := e.Proposal == t.Proposal && !drop.noLogID
		if e.command() && (same || m.keys(e.Proposal, e.Payload)&keys != 0) {
			return true
		}
	}
	for j := range MaxAttempts {
		o := &s.A[j]
		if x.Pool>>j&1 == 0 || m.Rules[rules.WitnessReplaces] && o.Proposal == t.Proposal {
			continue
		}
		meets := o.Proposal == t.Proposal || m.keys(o.Proposal, o.Payload)&keys != 0
		if !drop.noPoolKeys && meets || !drop.noPoolOrder && t.Revision <= o.Revision {
			return true
		}
	}
	if !drop.noLogOrder {
		st := m.Applied(x)
		if t.Revision <= m.Bound(x, &st) {
			return true
		}
	}
	if at, _ := m.Config(&x.Log); !m.Rules[rules.AcceptWhileJoint] && m.Scenario.Configs[at].joint() {
		return true
	}
	return !m.Rules[rules.AcceptWhileChanging] && changing(x)
}

// record is a voter's handling of a record: it accepts the record or not.
func (m *Model) record(s *State, a Action) (bool, string) {
	x, t := &s.M[a.A], &s.A[a.B]
	if !t.Used || t.Revision == 0 || x.Term == 0 || x.Role == Leader && x.Term == t.Term {
		return false, ""
	}
	_, id := m.Config(&x.Log)
	if !m.Rules[rules.WitnessAnyTerm] && x.Term != t.Term || !m.Rules[rules.WitnessAnyConfig] && id != t.ID ||
		!m.Rules[rules.WitnessNoVoter] && !m.voter(x, a.A) {
		return false, ""
	}
	if x.Pool>>a.B&1 == 1 {
		if Has(t.Accepted, a.A) {
			return false, "" // a repetition of the same answer
		}
	} else {
		drop := meeting{m.Rules[rules.WitnessNoLogID], m.Rules[rules.WitnessNoLogKeys], m.Rules[rules.WitnessNoPoolKeys],
			m.Rules[rules.WitnessNoLogOrder], m.Rules[rules.WitnessNoPoolOrder]}
		st := m.Applied(x)
		if r := &st.Rows[t.Proposal]; r.Aborted || m.conflict(s, x, t, drop) {
			return false, ""
		}
		if m.Rules[rules.WitnessReplaces] {
			m.dropProposal(s, x, t.Proposal)
		}
		x.Pool |= 1 << a.B
	}
	t.Accepted |= Bit(a.A)
	t.AccTerm[a.A], t.AccID[a.A] = x.Term, id
	return true, ""
}

// propose is a leader's handling of a proposal: it fixes the revision and answers at once, or it appends the proposal as a slow
// entry.
func (m *Model) propose(s *State, a Action) (bool, string) {
	x, t := &s.M[a.A], &s.A[a.B]
	if !t.Used || x.Role != Leader || x.Log.N >= maxLog-2 || x.Heir >= 0 && !m.Rules[rules.AcceptWhileTransfer] {
		return false, ""
	}
	_, id := m.Config(&x.Log)
	if !m.Rules[rules.LeaderAnyTerm] && x.Term != t.Term || !m.Rules[rules.LeaderAnyConfig] && id != t.ID {
		return false, ""
	}
	if m.Rules[rules.LeaderNoDedup] && (t.Fast || t.Pending) || !m.Rules[rules.LeaderNoDedup] && m.logged(x, t.Proposal) {
		return false, ""
	}
	drop := meeting{m.Rules[rules.LeaderNoDedup], m.Rules[rules.LeaderNoLogKeys], m.Rules[rules.LeaderNoPoolKeys],
		m.Rules[rules.LeaderNoLogOrder], m.Rules[rules.LeaderNoPoolOrder]}
	if t.Revision == 0 || !x.open() && !m.Rules[rules.LeaderOpensEarly] || m.conflict(s, x, t, drop) {
		e := plainEntry(slowEntry, t.Proposal, x.Term)
		e.Payload = t.Payload
		m.appendOwn(s, a.A, e)
		return true, ""
	}
	t.FastBy, t.FastTerm, t.FastID = a.A, x.Term, id
	if m.Rules[rules.LeaderEvaluatesLate] {
		t.Pending = true
	} else {
		st := m.Applied(x)
		t.Fast, t.Result = true, m.evaluate(&st, t.Proposal, t.Payload)
	}
	e := plainEntry(exactEntry, t.Proposal, x.Term)
	e.Revision, e.By, e.Attempt, e.Payload = t.Revision, a.A, a.B, t.Payload
	m.appendOwn(s, a.A, e)
	return true, ""
}

func (m *Model) evaluateLate(s *State, a Action) (bool, string) {
	x, t := &s.M[a.A], &s.A[a.B]
	if !t.Pending || t.FastBy != a.A || x.Role != Leader || x.Term != t.FastTerm {
		return false, ""
	}
	st := m.Applied(x)
	t.Pending, t.Fast, t.Result = false, true, m.evaluate(&st, t.Proposal, t.Payload)
	return true, ""
}

// decide is the proposer's count of the answers to an attempt.
func (m *Model) decide(s *State, a Action) (bool, string) {
	t := &s.A[a.A]
	if !t.Used || !t.Fast || Has(s.Reported, t.Proposal) {
		return false, ""
	}
	if s.Recovered && t.FastTerm <= m.Scenario.MaxTerm && !m.Rules[rules.RecoverySameEpoch] {
		return false, "" // a proposer that learns of success now may learn of a lost write
	}
	in := Bit(t.FastBy)
	for j := range int8(MaxAttempts) {
		o := &s.A[j]
		same := o.Revision == t.Revision && (o.Payload == t.Payload || m.Rules[rules.ProposerAnyPayload])
		if !o.Used || o.Proposal != t.Proposal || j != a.A && !m.Rules[rules.ProposerAnyAttempt] && !same {
			continue
		}
		for i := range int8(m.Scenario.Members) {
			if Has(o.Accepted, i) && (m.Rules[rules.ProposerAnyTerm] || o.AccTerm[i] == t.FastTerm) &&
				(m.Rules[rules.ProposerAnyConfig] || o.AccID[i] == t.FastID) {
				in |= Bit(i)
			}
		}
	}
	// The proposer counts by the configuration that it knows under the config id of the answers.
	if !m.Rules[rules.ProposerAnyTerm] && t.FastTerm != t.Term || !m.Rules[rules.ProposerAnyConfig] && t.FastID != t.ID ||
		!m.super(t.Config, in) {
		return false, ""
	}
	if bad := m.laws.checkL5(s, t); bad != "" {
		return true, bad
	}
	return true, s.report(t.Proposal, t.Revision, t.Result)
}

// answer is the slow answer of any member that has applied the proposal.
func (m *Model) answer(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if Has(s.Reported, a.B) || !Has(s.Invoked, a.B) {
		return false, ""
	}
	st := m.Applied(x)
	if r := &st.Rows[a.B]; r.Done {
		return true, s.report(a.B, r.Revision, r.Result)
	}
	return false, ""
}

func (m *Model) answerAbort(s *State, a Action) (bool, string) {
	if Has(s.Reported|s.Aborted, a.B) || !Has(s.Invoked, a.B) {
		return false, ""
	}
	x := &s.M[a.A]
	told := false
	for i := range x.Applied {
		told = told || x.Log.E[i].Kind == abortEntry && x.Log.E[i].Proposal == a.B
	}
	st := m.Applied(x)
	if !told || st.Rows[a.B].Done {
		return false, ""
	}
	s.Aborted |= Bit(a.B)
	return true, ""
}

// orphan is the report of a record that waited too long: the leader appends an abort, unless its log decides the proposal.
func (m *Model) orphan(s *State, a Action) (bool, string) {
	x, l, t := &s.M[a.A], &s.M[a.C], &s.A[a.B]
	if x.Pool>>a.B&1 == 0 || l.Role != Leader || l.Log.N >= maxLog-2 || l.Heir >= 0 || !l.open() && !m.Rules[rules.AbortEarly] {
		return false, ""
	}
	if m.Rules[rules.ForgetAtReport] {
		x.Pool &^= 1 << a.B
	}
	if !m.Rules[rules.AbortLogged] && m.logged(l, t.Proposal) {
		return m.Rules[rules.ForgetAtReport], ""
	}
	m.appendOwn(s, a.C, plainEntry(abortEntry, t.Proposal, l.Term))
	return true, ""
}
