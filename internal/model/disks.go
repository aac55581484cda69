package model

import "github.com/quorate/quorate/internal/consensus/rules"

// lose is the return of a member under its id with an empty disk, or with an old copy of its own disk. By our rules it is not a
// member any more: the others know its storage id, and how often its disk was started. Only a minority may be lost this way,
// and no successful proposal may be lost with it.
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

// restart gives a member a disk whose log ends at an index.
func (m *Model) restart(s *State, i, index int8) {
	x := &s.M[i]
	log := x.Log
	log.cut(index)
	*x = member{Voted: -1, Heir: -1, Term: log.lastTerm(), Log: log}
	for t := range s.Acked {
		s.Acked[t][i] = min(s.Acked[t][i], log.shared(&s.TermLog[t]))
	}
}

// foundAgain makes the members that lost their disks, which are a majority, found the cluster once more. A founding gives all
// of them the same first entry.
func (m *Model) foundAgain(s *State) {
	for i := range int8(m.Scenario.Members) {
		if Has(s.Lost, i) {
			m.restart(s, i, 1)
			s.M[i].Commit, s.M[i].Applied = s.M[i].Log.N, s.M[i].Log.N
		}
	}
	s.Dead &^= s.Lost
}
