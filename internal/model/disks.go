package model

import "github.com/quorate/quorate/internal/consensus/rules"

// lose is a member that comes back under its id with an empty disk, or with an old copy of its own. By our rules it is nobody
// then: the others know by which disk it spoke, and how often that was started. A minority may be lost so, and nothing that
// succeeded may be lost with it.
func (m *Model) lose(s *State, a Action) (bool, string) {
	x, lost, empty := &s.M[a.A], s.Lost|Bit(a.A), a.D == 0
	voters := m.Scenario.Configs[0].Old
	tooMany := 2*Count(lost) >= Count(voters) && !(empty && m.Rules[rules.FoundByMajority])
	if !m.Scenario.Disks || tooMany || Has(s.Lost, a.A) || a.C > x.Log.N || empty && a.C > 0 {
		return false, ""
	}
	s.Lost = lost
	if s.R.Stage != NoRead && s.R.Reader == a.A {
		s.R = Read{}
	}
	switch {
	case majority(voters, lost):
		m.foundAgain(s)
	case empty && !m.Rules[rules.IgnoreBinding], !empty && !m.Rules[rules.IgnoreLives]:
		s.Dead |= Bit(a.A)
		x.leave()
	default:
		m.restart(s, a.A, a.C)
	}
	return true, ""
}

// restart gives a member a disk that ends at an index.
func (m *Model) restart(s *State, i, index int8) {
	x := &s.M[i]
	log := x.Log
	log.cut(index)
	*x = member{Voted: -1, Heir: -1, Term: log.lastTerm(), Log: log}
	for t := range s.Acked {
		s.Acked[t][i] = min(s.Acked[t][i], log.shared(&s.TermLog[t]))
	}
}

// foundAgain lets those that lost their disks begin the cluster once more: they are a majority. A founding gives all of them
// the same first entry.
func (m *Model) foundAgain(s *State) {
	for i := range int8(m.Scenario.Members) {
		if Has(s.Lost, i) {
			m.restart(s, i, 1)
			s.M[i].Commit, s.M[i].Applied = s.M[i].Log.N, s.M[i].Log.N
		}
	}
	s.Dead &^= s.Lost
}
