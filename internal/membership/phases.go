package membership

import "slices"

// Phases lists what a job goes through, in order. A View that is no older than the job leaves out what will not occur;
// without one, or for a job that is under way, the list has what can occur.
func Phases(s *Spec, v *View) []Phase {
	if s.kind() == KindDrain {
		return []Phase{PhaseDrain}
	}
	joins, promotes := len(s.Add) > 0, len(s.Promote) > 0
	goes := len(s.Remove)+len(s.Demote) > 0
	room := joins && len(s.Remove) > 0
	swaps := s.revotes()
	leads := goes
	marks := len(s.Cordon)+len(s.Uncordon) > 0 || slices.ContainsFunc(s.Add, func(n Newcomer) bool { return n.Cordoned })
	waits := promotes
	if v != nil {
		g := newGoal(s, v, nil)
		marks = g.cordonMarks.any()
		joins, room, waits = len(g.arrivals.missing()) > 0, len(g.room) > 0, len(g.awaited()) > 0
		swaps = len(g.remove)+len(g.promote)+len(g.demote) > len(g.room)
		leads = g.roles.leaving(v.Leader) && g.successor() != 0 && !slices.Contains(g.room, v.Leader)
	}
	var phases []Phase
	add := func(when bool, more ...Phase) {
		if when {
			phases = append(phases, more...)
		}
	}
	add(room, PhaseMakeRoom)
	add(joins, PhaseJoin)
	add(joins || waits, PhaseStart, PhaseSnapshot, PhaseCatchUp)
	add(marks, PhaseCordon)
	add(leads, PhaseDrain)
	add(swaps, PhaseSwap)
	add((v == nil || !swaps) && len(s.Update) > 0, PhaseUpdate)
	add(swaps, PhaseDecided)
	return append(phases, PhaseSettle)
}

// revotes reports whether a Spec changes who votes.
func (s *Spec) revotes() bool {
	return len(s.Remove)+len(s.Demote)+len(s.Promote) > 0 ||
		slices.ContainsFunc(s.Add, func(n Newcomer) bool { return !n.Learner })
}
