package explore

import "github.com/quorate/quorate/internal/model"

// actions lists the actions that are worth trying in a state of a bound.
func (b *search) actions(s *model.State, out []model.Action) []model.Action {
	out = b.sends(s, out)
	for i := range int8(b.m.Scenario.Members) {
		out = b.elections(s, i, out)
		x := &s.M[i]
		for k := x.Log.N; x.Role == model.Leader && k > x.Commit; k-- {
			if x.Log.At(k).Term == x.Term && model.Count(s.Holders(x.Term, k)) >= 2 {
				out = append(out, model.Action{Kind: model.Commit, A: i, C: k})
				break
			}
		}
		for j := range int8(model.MaxAttempts) {
			if !s.A[j].Used {
				continue
			}
			out = append(out, model.Action{Kind: model.Record, A: i, B: j}, model.Action{Kind: model.Propose, A: i, B: j})
			for l := range int8(b.m.Scenario.Members) {
				out = append(out, model.Action{Kind: model.Orphan, A: i, B: j, C: l})
			}
		}
		out = append(out, model.Action{Kind: model.Crash, A: i, C: x.Applied, D: x.Applied},
			model.Action{Kind: model.Crash, A: i})
	}
	for t := int8(1); t <= b.m.Scenario.MaxTerm; t++ {
		for i := range int8(b.m.Scenario.Members) {
			for k := int8(1); k <= s.TermLog[t].N; k++ {
				out = append(out, model.Action{Kind: model.Receive, A: t, B: i, C: k, D: 1})
			}
		}
	}
	if b.m.Scenario.Reads {
		out = b.readActions(s, out)
	}
	return out
}

// sends lists the new attempts: one view for each term that a member is in.
func (b *search) sends(s *model.State, out []model.Action) []model.Action {
	slot := int8(-1)
	var of [model.MaxProposals]int8
	for j := int8(model.MaxAttempts) - 1; j >= 0; j-- {
		if s.A[j].Used {
			of[s.A[j].Proposal]++
		} else {
			slot = j
		}
	}
	for p := range int8(b.m.Scenario.Proposals) {
		if of[p] >= b.m.Scenario.Attempts || slot < 0 {
			continue
		}
		seen := uint8(0)
		for i := range int8(b.m.Scenario.Members) {
			if model.Has(seen, s.M[i].Term) {
				continue
			}
			seen |= model.Bit(s.M[i].Term)
			for _, r := range b.m.Scenario.Revisions {
				out = append(out, model.Action{Kind: model.Send, A: slot, B: p, C: r, D: i})
			}
		}
	}
	return out
}

func (b *search) elections(s *model.State, i int8, out []model.Action) []model.Action {
	out = append(out, model.Action{Kind: model.Campaign, A: i})
	x := &s.M[i]
	if x.Role != model.Candidate {
		return out
	}
	for v := range int8(b.m.Scenario.Members) {
		out = append(out, model.Action{Kind: model.Vote, A: v, B: i})
	}
	for set := uint8(1); set < 8; set++ {
		if set&^x.Votes == 0 && model.Count(set) >= 2 {
			out = append(out, model.Action{Kind: model.Win, A: i, M: set}, model.Action{Kind: model.Win, A: i,
				M: set, C: 1})
		}
	}
	return out
}

func (b *search) readActions(s *model.State, out []model.Action) []model.Action {
	for i := range int8(b.m.Scenario.Members) {
		out = append(out, model.Action{Kind: model.Ask, A: i}, model.Action{Kind: model.Tell, A: i},
			model.Action{Kind: model.Infer, A: i, C: s.M[i].Log.N})
		for k := range int8(b.m.Scenario.Members) {
			out = append(out, model.Action{Kind: model.PreVote, A: i, B: k})
		}
		if s.R.Stage != model.NoRead {
			out = append(out, model.Action{Kind: model.Echo, A: i, B: s.R.Leader})
		}
	}
	return append(out, model.Action{Kind: model.Take}, model.Action{Kind: model.Hand},
		model.Action{Kind: model.Word}, model.Action{Kind: model.Confirm, B: 1},
		model.Action{Kind: model.Confirm, B: 2}, model.Action{Kind: model.Serve})
}
