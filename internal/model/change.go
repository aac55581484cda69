package model

import (
	"github.com/quorate/quorate/internal/consensus/rules"
	"math/bits"
)

// change appends a configuration, one at a time, once the leader's own no-op has committed.
func (m *Model) change(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if x.Role != Leader || x.Log.N >= maxLog-2 || !m.Rules[rules.ChangeInOldTerm] && !x.open() {
		return false, ""
	}
	at, _ := m.Config(&x.Log)
	allowed := false
	for _, c := range m.Scenario.Next[at] {
		allowed = allowed || c == a.B
	}
	if !allowed {
		return false, ""
	}
	for i := x.Commit; i < x.Log.N && !m.Rules[rules.TwoChanges]; i++ {
		if x.Log.E[i].Kind == ConfigEntry {
			return false, ""
		}
	}
	m.appendOwn(s, a.A, plainEntry(ConfigEntry, a.B, x.Term))
	return true, ""
}

// transfer begins a transfer of leadership, or ends it.
func (m *Model) transfer(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if x.Role != Leader || x.Heir == a.B || a.B == a.A || a.B >= 0 && !m.voter(x, a.B) {
		return false, ""
	}
	x.Heir = a.B
	return true, ""
}

// timeoutNow makes the transferee campaign at once, when it holds the leader's log.
func (m *Model) timeoutNow(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if x.Role != Leader || x.Heir < 0 || Has(s.Dead, x.Heir) {
		return false, ""
	}
	h := &s.M[x.Heir]
	if h.Term > x.Term || s.Acked[x.Term][x.Heir] < x.Log.N || h.Role == Leader && h.Term == x.Term {
		return false, ""
	}
	was := h.Term
	h.Term = x.Term
	if !m.stand(s, x.Heir) {
		h.Term = was
		return false, ""
	}
	h.Forced = true
	x.LeaseBarred = x.LeaseBarred || !m.Rules[rules.LeaseNotBarred]
	return true, ""
}

// survive is the recovery from a lost quorum: of the members that are left, the one with the most advanced log goes on alone,
// in a new epoch. It first logs the records that it holds or that the compared directories hold, and then the configuration in
// which it is the only voter. Proposals that reached none of these members are lost, and no member can know it.
func (m *Model) survive(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	left := a.M | Bit(a.A)
	if !m.Scenario.Recovers || s.Recovered || x.Term == 0 || left>>uint(m.Scenario.Members) != 0 {
		return false, ""
	}
	if x.Log.N >= maxLog-6 || majority(m.Scenario.Configs[0].Old, left) {
		return false, ""
	}
	for i := range int8(m.Scenario.Members) {
		y := &s.M[i].Log
		if Has(left, i) && (y.lastTerm() > x.Log.lastTerm() || y.lastTerm() == x.Log.lastTerm() && y.N > x.Log.N) {
			return false, ""
		}
	}
	kept := m.keptBy(s, a.A, left)
	list := m.adopted(s, x, left)
	m.order(list, false)
	if m.Rules[rules.RecoveryDescending] {
		for i, k := 0, len(list)-1; i < k; i, k = i+1, k-1 {
			list[i], list[k] = list[k], list[i]
		}
	}
	m.lead(s, a.A, list)
	s.Recovered = true
	if !m.Rules[rules.RecoverySameEpoch] {
		s.Dead = (Bit(int8(m.Scenario.Members)) - 1) &^ Bit(a.A)
		s.Committed = journal{}
		s.TermCommit = [MaxTerm + 1]int8{}
	}
	s.Reported &= kept
	s.Loose = s.Reported
	s.Floor = [MaxProposals]int8{}
	s.R = Read{}
	return true, m.committed(s, x, x.Log.N)
}

// lead makes the survivor leader of a term above all earlier ones.
func (m *Model) lead(s *State, i int8, list []recovered) {
	x := &s.M[i]
	x.leave()
	x.Term, x.Voted, x.Role = m.Scenario.MaxTerm+1, i, Leader
	s.LeaderOf[x.Term] = i
	for _, r := range list {
		e := plainEntry(exactEntry, r.proposal, x.Term)
		e.Revision, e.Attempt, e.Payload = r.revision, r.slot, r.payload
		m.appendOwn(s, i, e)
	}
	m.appendOwn(s, i, plainEntry(ConfigEntry, 1+i, x.Term))
}

// adopted returns the attempts that the compared directories hold and the survivor's log does not decide.
func (m *Model) adopted(s *State, x *member, left uint8) (list []recovered) {
	if m.Rules[rules.RecoveryDrops] {
		return nil
	}
	st := m.Applied(x)
	held := uint16(0)
	for i := range int8(m.Scenario.Members) {
		if y := &s.M[i]; Has(left, i) && (y == x || !m.Rules[rules.RecoveryOwnOnly]) {
			held |= m.held(i, y)
		}
	}
	for held != 0 && len(list) < 4 {
		j := int8(bits.TrailingZeros16(held))
		held &= held - 1
		t := &s.A[j]
		again := st.Rows[t.Proposal].Done || st.Rows[t.Proposal].Aborted || m.decidedInLog(&x.Log, t, t.Revision)
		for _, r := range list {
			again = again || r.proposal == t.Proposal && r.revision == t.Revision && r.payload == t.Payload
		}
		if !again {
			list = append(list, recovered{t.Proposal, t.Revision, t.Payload, j})
		}
	}
	return list
}

// keptBy returns the reported proposals that must survive a recovery: those in the survivor's log, and those whose record a
// compared directory holds. A proposal of the second kind need not survive if there is also a record of another proposal at the
// same revision, or of another attempt of the same proposal: no member can know which of the two succeeded.
func (m *Model) keptBy(s *State, i int8, left uint8) (kept uint8) {
	x := &s.M[i]
	st := m.StoreAt(&x.Log, x.Log.N)
	held := uint16(0)
	for k := range int8(m.Scenario.Members) {
		if Has(left, k) {
			held |= m.held(k, &s.M[k])
		}
	}
	for p := range int8(MaxProposals) {
		if r := &st.Rows[p]; r.Done && r.Revision == s.Revision[p] {
			kept |= Bit(p)
		}
		own, rival := false, false
		for j := range MaxAttempts {
			t := &s.A[j]
			if held>>j&1 == 0 {
				continue
			}
			sameRevision, same := t.Revision == s.Revision[p], t.Proposal == p
			own, rival = own || same && sameRevision, rival || same != sameRevision

		}
		if own && !rival {
			kept |= Bit(p)
		}
	}
	return kept & s.Reported
}
