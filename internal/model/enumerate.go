package model

// actions lists what is worth trying in a state of a bound.
func (m *Model) actions(s *state, out []action) []action {
	out = m.sends(s, out)
	for i := range int8(m.scenario.Members) {
		out = m.elections(s, i, out)
		x := &s.M[i]
		for k := x.Log.N; x.Role == leader && k > x.Commit; k-- {
			if x.Log.at(k).Term == x.Term && count(s.holders(x.Term, k)) >= 2 {
				out = append(out, action{Kind: commit, A: i, C: k})
				break
			}
		}
		for j := range int8(maxAttempts) {
			if !s.A[j].Used {
				continue
			}
			out = append(out, action{Kind: record, A: i, B: j}, action{Kind: propose, A: i, B: j})
			for l := range int8(m.scenario.Members) {
				out = append(out, action{Kind: orphan, A: i, B: j, C: l})
			}
		}
		out = append(out, action{Kind: crash, A: i, C: x.Applied, D: x.Applied}, action{Kind: crash, A: i})
	}
	for t := int8(1); t <= m.scenario.MaxTerm; t++ {
		for i := range int8(m.scenario.Members) {
			for k := int8(1); k <= s.TermLog[t].N; k++ {
				out = append(out, action{Kind: receive, A: t, B: i, C: k, D: 1})
			}
		}
	}
	if m.scenario.Reads {
		out = m.readActions(s, out)
	}
	return out
}

// sends lists new attempts: one view for each term that a member is in.
func (m *Model) sends(s *state, out []action) []action {
	slot := int8(-1)
	var of [maxProposals]int8
	for j := int8(maxAttempts) - 1; j >= 0; j-- {
		if s.A[j].Used {
			of[s.A[j].Proposal]++
		} else {
			slot = j
		}
	}
	for p := range int8(m.scenario.Proposals) {
		if of[p] >= m.scenario.Attempts || slot < 0 {
			continue
		}
		seen := uint8(0)
		for i := range int8(m.scenario.Members) {
			if has(seen, s.M[i].Term) {
				continue
			}
			seen |= bit(s.M[i].Term)
			for _, r := range m.scenario.Revisions {
				out = append(out, action{Kind: send, A: slot, B: p, C: r, D: i})
			}
		}
	}
	return out
}

func (m *Model) elections(s *state, i int8, out []action) []action {
	out = append(out, action{Kind: campaign, A: i})
	x := &s.M[i]
	if x.Role != candidate {
		return out
	}
	for v := range int8(m.scenario.Members) {
		out = append(out, action{Kind: vote, A: v, B: i})
	}
	for set := uint8(1); set < 8; set++ {
		if set&^x.Votes == 0 && count(set) >= 2 {
			out = append(out, action{Kind: win, A: i, M: set}, action{Kind: win, A: i, M: set, C: 1})
		}
	}
	return out
}

func (m *Model) readActions(s *state, out []action) []action {
	for i := range int8(m.scenario.Members) {
		out = append(out, action{Kind: ask, A: i}, action{Kind: tell, A: i}, action{Kind: infer, A: i, C: s.M[i].Log.N})
		for k := range int8(m.scenario.Members) {
			out = append(out, action{Kind: preVote, A: i, B: k})
		}
		if s.R.Stage != noRead {
			out = append(out, action{Kind: echo, A: i, B: s.R.Leader})
		}
	}
	return append(out, action{Kind: take}, action{Kind: hand}, action{Kind: word}, action{Kind: confirm, B: 1},
		action{Kind: confirm, B: 2}, action{Kind: serve})
}
