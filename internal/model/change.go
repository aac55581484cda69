package model

import "math/bits"

// change appends a configuration, one at a time, once the leader's own no-op has committed.
func (m *Model) change(s *state, a action) (bool, string) {
	x := &s.M[a.A]
	if x.Role != leader || x.Log.N >= maxLog-2 || !m.rules[ChangeEarly] && !x.open() {
		return false, ""
	}
	at, _ := m.config(&x.Log)
	allowed := false
	for _, c := range m.scenario.Next[at] {
		allowed = allowed || c == a.B
	}
	if !allowed {
		return false, ""
	}
	for i := x.Commit; i < x.Log.N && !m.rules[ChangeTwice]; i++ {
		if x.Log.E[i].Kind == configEntry {
			return false, ""
		}
	}
	m.appendOwn(s, a.A, plainEntry(configEntry, a.B, x.Term))
	return true, ""
}

// transfer begins to hand leadership over, or gives that up.
func (m *Model) transfer(s *state, a action) (bool, string) {
	x := &s.M[a.A]
	if x.Role != leader || x.Heir == a.B || a.B == a.A || a.B >= 0 && !m.voter(x, a.B) {
		return false, ""
	}
	x.Heir = a.B
	return true, ""
}

// timeoutNow makes the heir campaign without waiting, once it holds the leader's log.
func (m *Model) timeoutNow(s *state, a action) (bool, string) {
	x := &s.M[a.A]
	if x.Role != leader || x.Heir < 0 || has(s.Dead, x.Heir) {
		return false, ""
	}
	h := &s.M[x.Heir]
	if h.Term > x.Term || s.Acked[x.Term][x.Heir] < x.Log.N || h.Role == leader && h.Term == x.Term {
		return false, ""
	}
	was := h.Term
	h.Term = x.Term
	if !m.stand(s, x.Heir) {
		h.Term = was
		return false, ""
	}
	h.Forced = true
	x.LeaseBarred = x.LeaseBarred || !m.rules[LeaseNotBarred]
	return true, ""
}

// survive is recovery from a lost quorum: the member with the most advanced log of those that are left goes on alone, in
// a new epoch. Before the configuration that makes it the only voter come the records that it, and the directories
// compared with it, hold. What reached none of them is lost, and nobody can know it.
func (m *Model) survive(s *state, a action) (bool, string) {
	x := &s.M[a.A]
	left := a.M | bit(a.A)
	if !m.scenario.Recovers || s.Recovered || x.Term == 0 || left>>uint(m.scenario.Members) != 0 {
		return false, ""
	}
	if x.Log.N >= maxLog-6 || majority(m.scenario.Configs[0].Old, left) {
		return false, ""
	}
	for i := range int8(m.scenario.Members) {
		y := &s.M[i].Log
		if has(left, i) && (y.lastTerm() > x.Log.lastTerm() || y.lastTerm() == x.Log.lastTerm() && y.N > x.Log.N) {
			return false, ""
		}
	}
	kept := m.keptBy(s, a.A, left)
	list := m.adopted(s, x, left)
	m.order(list, false)
	if m.rules[RecoveryDescending] {
		for i, k := 0, len(list)-1; i < k; i, k = i+1, k-1 {
			list[i], list[k] = list[k], list[i]
		}
	}
	m.lead(s, a.A, list)
	s.Recovered = true
	if !m.rules[RecoverySameEpoch] {
		s.Dead = (bit(int8(m.scenario.Members)) - 1) &^ bit(a.A)
		s.Committed = journal{}
		s.TermCommit = [maxTerm + 1]int8{}
	}
	s.Reported &= kept
	s.Loose = s.Reported
	s.Floor = [maxProposals]int8{}
	s.R = read{}
	return true, m.committed(s, x, x.Log.N)
}

// lead makes the survivor leader of a term above all that were.
func (m *Model) lead(s *state, i int8, list []recovered) {
	x := &s.M[i]
	x.leave()
	x.Term, x.Voted, x.Role = m.scenario.MaxTerm+1, i, leader
	s.LeaderOf[x.Term] = i
	for _, r := range list {
		e := plainEntry(exactEntry, r.proposal, x.Term)
		e.Revision, e.Attempt = r.revision, r.slot
		m.appendOwn(s, i, e)
	}
	m.appendOwn(s, i, plainEntry(configEntry, 1+i, x.Term))
}

// adopted returns the attempts that the compared directories hold and the survivor's log does not decide.
func (m *Model) adopted(s *state, x *member, left uint8) (list []recovered) {
	if m.rules[RecoveryDrops] {
		return nil
	}
	st := m.applied(x)
	held := uint16(0)
	for i := range int8(m.scenario.Members) {
		if y := &s.M[i]; has(left, i) && (y == x || !m.rules[RecoveryOwnOnly]) {
			held |= m.held(i, y)
		}
	}
	for held != 0 && len(list) < 4 {
		j := int8(bits.TrailingZeros16(held))
		held &= held - 1
		t := &s.A[j]
		again := st.Rows[t.Proposal].Done || st.Rows[t.Proposal].Aborted || m.decidedInLog(&x.Log, t.Proposal, t.Revision)
		for _, r := range list {
			again = again || r.proposal == t.Proposal && r.revision == t.Revision
		}
		if !again {
			list = append(list, recovered{t.Proposal, t.Revision, j})
		}
	}
	return list
}

// keptBy returns the reported proposals that must outlive a recovery: those in the survivor's log, and those of which a
// compared directory holds the record, unless a record of another proposal at the same revision, or of another attempt of
// the same proposal, is held, too: nobody can tell which of the two had succeeded.
func (m *Model) keptBy(s *state, i int8, left uint8) (kept uint8) {
	x := &s.M[i]
	st := m.storeAt(&x.Log, x.Log.N)
	held := uint16(0)
	for k := range int8(m.scenario.Members) {
		if has(left, k) {
			held |= m.held(k, &s.M[k])
		}
	}
	for p := range int8(maxProposals) {
		if r := &st.Rows[p]; r.Done && r.Revision == s.Revision[p] {
			kept |= bit(p)
		}
		own, rival := false, false
		for j := range maxAttempts {
			t := &s.A[j]
			if held>>j&1 == 0 {
				continue
			}
			sameRevision, same := t.Revision == s.Revision[p], t.Proposal == p
			own, rival = own || same && sameRevision, rival || same != sameRevision

		}
		if own && !rival {
			kept |= bit(p)
		}
	}
	return kept & s.Reported
}
