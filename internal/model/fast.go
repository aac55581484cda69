package model

// send makes the messages of an attempt.
func (m *Model) send(s *state, a action) (bool, string) {
	t, v := &s.A[a.A], &s.M[a.D]
	if t.Used || has(s.Reported|s.Aborted, a.B) || v.Term == 0 || a.C >= maxRevision-4 {
		return false, ""
	}
	at, id := m.config(&v.Log)
	*t = attempt{Used: true, Proposal: a.B, Revision: a.C, Term: v.Term, ID: id, Config: at}
	if !has(s.Invoked, a.B) {
		s.Invoked |= bit(a.B)
		s.Floor[a.B] = s.highest()
	}
	return true, ""
}

// highest is the largest revision that was reported.
func (s *state) highest() (top int8) {
	for p := range int8(maxProposals) {
		if has(s.Reported, p) {
			top = max(top, s.Revision[p])
		}
	}
	return top
}

// meeting says which conditions of acceptance a mutation drops.
type meeting struct{ noLogKeys, noPoolKeys, noLogOrder, noPoolOrder bool }

// conflict reports whether an attempt may not be accepted: its keys or its revision meet what the member has not applied.
func (m *Model) conflict(s *state, x *member, t *attempt, drop meeting) bool {
	keys := m.scenario.Footprint[t.Proposal]
	for i := x.Applied; i < x.Log.N && !drop.noLogKeys; i++ {
		if e := &x.Log.E[i]; e.command() && m.scenario.Footprint[e.Proposal]&keys != 0 {
			return true
		}
	}
	for j := range maxAttempts {
		o := &s.A[j]
		if x.Pool>>j&1 == 0 || m.rules[WitnessReplaces] && o.Proposal == t.Proposal {
			continue
		}
		if !drop.noPoolKeys && m.scenario.Footprint[o.Proposal]&keys != 0 || !drop.noPoolOrder && t.Revision <= o.Revision {
			return true
		}
	}
	if !drop.noLogOrder {
		st := m.applied(x)
		if t.Revision <= m.bound(x, &st) {
			return true
		}
	}
	if at, _ := m.config(&x.Log); !m.rules[AcceptWhileJoint] && m.scenario.Configs[at].joint() {
		return true
	}
	return !m.rules[AcceptWhileChanging] && changing(x)
}

// record is a voter's answer to a proposal that it is asked to hold.
func (m *Model) record(s *state, a action) (bool, string) {
	x, t := &s.M[a.A], &s.A[a.B]
	if !t.Used || t.Revision == 0 || x.Term == 0 || x.Role == leader && x.Term == t.Term {
		return false, ""
	}
	_, id := m.config(&x.Log)
	if !m.rules[WitnessAnyTerm] && x.Term != t.Term || !m.rules[WitnessAnyConfig] && id != t.ID ||
		!m.rules[WitnessNoVoter] && !m.voter(x, a.A) {
		return false, ""
	}
	if x.Pool>>a.B&1 == 1 {
		if has(t.Accepted, a.A) {
			return false, "" // the same answer once more
		}
	} else {
		drop := meeting{m.rules[WitnessNoLogKeys], m.rules[WitnessNoPoolKeys], m.rules[WitnessNoLogOrder],
			m.rules[WitnessNoPoolOrder]}
		st := m.applied(x)
		if r := &st.Rows[t.Proposal]; r.Aborted || m.conflict(s, x, t, drop) {
			return false, ""
		}
		if m.rules[WitnessReplaces] {
			m.dropProposal(s, x, t.Proposal)
		}
		x.Pool |= 1 << a.B
	}
	t.Accepted |= bit(a.A)
	t.AccTerm[a.A], t.AccID[a.A] = x.Term, id
	return true, ""
}

// propose is what a leader does with a proposal: fix its revision and answer at once, or append it as any other.
func (m *Model) propose(s *state, a action) (bool, string) {
	x, t := &s.M[a.A], &s.A[a.B]
	if !t.Used || x.Role != leader || x.Log.N >= maxLog-2 || x.Heir >= 0 && !m.rules[AcceptWhileTransfer] {
		return false, ""
	}
	_, id := m.config(&x.Log)
	if !m.rules[LeaderAnyTerm] && x.Term != t.Term || !m.rules[LeaderAnyConfig] && id != t.ID {
		return false, ""
	}
	if m.rules[LeaderNoDedup] && (t.Fast || t.Pending) || !m.rules[LeaderNoDedup] && m.logged(x, t.Proposal) {
		return false, ""
	}
	drop := meeting{m.rules[LeaderNoLogKeys], m.rules[LeaderNoPoolKeys], m.rules[LeaderNoLogOrder],
		m.rules[LeaderNoPoolOrder]}
	if t.Revision == 0 || !x.open() && !m.rules[LeaderOpensEarly] || m.conflict(s, x, t, drop) {
		m.appendOwn(s, a.A, plainEntry(slowEntry, t.Proposal, x.Term))
		return true, ""
	}
	t.FastBy, t.FastTerm, t.FastID = a.A, x.Term, id
	if m.rules[LeaderEvaluatesLate] {
		t.Pending = true
	} else {
		st := m.applied(x)
		t.Fast, t.Result = true, m.evaluate(&st, t.Proposal)
	}
	e := plainEntry(exactEntry, t.Proposal, x.Term)
	e.Revision, e.By, e.Attempt = t.Revision, a.A, a.B
	m.appendOwn(s, a.A, e)
	return true, ""
}

func (m *Model) evaluateLate(s *state, a action) (bool, string) {
	x, t := &s.M[a.A], &s.A[a.B]
	if !t.Pending || t.FastBy != a.A || x.Role != leader || x.Term != t.FastTerm {
		return false, ""
	}
	st := m.applied(x)
	t.Pending, t.Fast, t.Result = false, true, m.evaluate(&st, t.Proposal)
	return true, ""
}

// decide is the proposer adding up answers.
func (m *Model) decide(s *state, a action) (bool, string) {
	t := &s.A[a.A]
	if !t.Used || !t.Fast || has(s.Reported, t.Proposal) {
		return false, ""
	}
	if s.Recovered && t.FastTerm <= m.scenario.MaxTerm && !m.rules[RecoverySameEpoch] {
		return false, "" // whoever is told now is told of what is lost
	}
	in := bit(t.FastBy)
	for j := range int8(maxAttempts) {
		o := &s.A[j]
		if !o.Used || o.Proposal != t.Proposal || j != a.A && !m.rules[ProposerAnyAttempt] && o.Revision != t.Revision {
			continue
		}
		for i := range int8(m.scenario.Members) {
			if has(o.Accepted, i) && (m.rules[ProposerAnyTerm] || o.AccTerm[i] == t.FastTerm) &&
				(m.rules[ProposerAnyConfig] || o.AccID[i] == t.FastID) {
				in |= bit(i)
			}
		}
	}
	// The proposer counts by the configuration that it knows under the id which the answers bear.
	if !m.rules[ProposerAnyTerm] && t.FastTerm != t.Term || !m.rules[ProposerAnyConfig] && t.FastID != t.ID ||
		!m.super(t.Config, in) {
		return false, ""
	}
	if bad := m.laws.checkL5(s, t); bad != "" {
		return true, bad
	}
	return true, s.report(t.Proposal, t.Revision, t.Result)
}

// answer is the slow answer of any member that has applied the proposal.
func (m *Model) answer(s *state, a action) (bool, string) {
	x := &s.M[a.A]
	if has(s.Reported, a.B) || !has(s.Invoked, a.B) {
		return false, ""
	}
	st := m.applied(x)
	if r := &st.Rows[a.B]; r.Done {
		return true, s.report(a.B, r.Revision, r.Result)
	}
	return false, ""
}

func (m *Model) answerAbort(s *state, a action) (bool, string) {
	if has(s.Reported|s.Aborted, a.B) || !has(s.Invoked, a.B) {
		return false, ""
	}
	x := &s.M[a.A]
	told := false
	for i := range x.Applied {
		told = told || x.Log.E[i].Kind == abortEntry && x.Log.E[i].Proposal == a.B
	}
	st := m.applied(x)
	if !told || st.Rows[a.B].Done {
		return false, ""
	}
	s.Aborted |= bit(a.B)
	return true, ""
}

// orphan is a record that waited for too long: the leader decides it by an abort, unless its log does.
func (m *Model) orphan(s *state, a action) (bool, string) {
	x, l, t := &s.M[a.A], &s.M[a.C], &s.A[a.B]
	if x.Pool>>a.B&1 == 0 || l.Role != leader || l.Log.N >= maxLog-2 || l.Heir >= 0 || !l.open() && !m.rules[AbortEarly] {
		return false, ""
	}
	if m.rules[ForgetAtReport] {
		x.Pool &^= 1 << a.B
	}
	if !m.rules[AbortLogged] && m.logged(l, t.Proposal) {
		return m.rules[ForgetAtReport], ""
	}
	m.appendOwn(s, a.C, plainEntry(abortEntry, t.Proposal, l.Term))
	return true, ""
}
