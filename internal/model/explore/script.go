package explore

import (
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model"
)

// scripts are traces for mutations whose absence needs more terms than the walks reach. With every rule on, the marked step is
// refused and nothing breaks.
var scripts = map[string]func() *Finding{
	"leader-no-pool-keys":  func() *Finding { return poolScript([model.MaxProposals]uint8{1, 2, 1}, 7) },
	"leader-no-pool-order": func() *Finding { return poolScript([model.MaxProposals]uint8{1, 1, 2}, 5) },

	"witness-no-log-id": payloadScript,

	"read-old-ends":       func() *Finding { return endsScript("n3", oneEcho, oneEcho) },
	"read-while-changing": func() *Finding { return endsScript("3to4", nil, changeAndEchoes) },
}

var (
	oneEcho         = []model.Action{{Kind: model.Echo, A: 1, B: 0}}
	changeAndEchoes = []model.Action{
		{Kind: model.Change, A: 0, B: 1}, {Kind: model.Echo, A: 1, B: 0}, {Kind: model.Echo, A: 3, B: 0},
	}
)

// endsScript: C infers that P1, of the slow path, has committed, and answers; neither A, the leader, nor B knows. A read of A
// that B confirms afterwards must not be handed out. An earlier read had told A the ends of the logs on the disks of B and C.
func endsScript(cluster string, before, after []model.Action) *Finding {
	sc := *scenarios[cluster]
	sc.Proposals, sc.MaxTerm, sc.Footprint = 2, 2, [model.MaxProposals]uint8{1, 2}
	read := func(echoes []model.Action) []model.Action {
		all := []model.Action{{Kind: model.Ask, A: 0}}
		if len(echoes) > 0 && echoes[0].Kind == model.Change {
			all, echoes = append([]model.Action{echoes[0]}, all...), echoes[1:]
		}
		all = append(append(all, model.Action{Kind: model.Take}), echoes...)
		return append(all, model.Action{Kind: model.Hand}, model.Action{Kind: model.Serve})
	}
	trace := []model.Action{
		{Kind: model.Send, A: 0, B: 0, D: 0}, {Kind: model.Propose, A: 0, B: 0}, {Kind: model.Receive, A: 1, B: 1, C: 2},
		{Kind: model.Commit, A: 0, C: 2}, {Kind: model.Apply, A: 0, C: 2}, {Kind: model.Answer, A: 0, B: 0},
	}
	if before != nil {
		trace = append(trace, read(append([]model.Action{{Kind: model.Echo, A: 2, B: 0}}, before...))...)
	}
	trace = append(trace, model.Action{Kind: model.Send, A: 1, B: 1, D: 2}, model.Action{Kind: model.Propose, A: 0, B: 1},
		model.Action{Kind: model.Receive, A: 1, B: 2, C: 3}, model.Action{Kind: model.Infer, A: 2, C: 3},
		model.Action{Kind: model.Apply, A: 2, C: 3}, model.Action{Kind: model.Answer, A: 2, B: 1})
	return &Finding{model: model.New(&sc, rules.Set{}), trace: append(trace, read(after)...)}
}

// poolScript: four voters. A (term 1) answers P0@5 fast; only B holds its record. B (term 2) is elected without recovering P0,
// C and D hold the orphan P1@4, and B answers P2 fast although its own pool conflicts: the marked step. C (term 3) recovers P1
// and P2 and replaces P2 on B by P1 before it fails. B (term 4), with the votes of A and D, finds two holders of P0 and two of
// P2.
func poolScript(footprint [model.MaxProposals]uint8, revision int8) *Finding {
	sc := *scenarios["n4"]
	sc.Proposals, sc.MaxTerm, sc.Footprint = 3, 4, footprint
	votes := func(who, c int8) model.Action { return model.Action{Kind: model.Vote, A: who, B: c} }
	gets := func(term, who, upTo int8) model.Action {
		return model.Action{Kind: model.Receive, A: term, B: who, C: upTo}
	}
	holds := func(who, slot int8) model.Action { return model.Action{Kind: model.Record, A: who, B: slot} }
	return &Finding{model: model.New(&sc, rules.Set{}), trace: []model.Action{
		{Kind: model.Send, A: 0, B: 0, C: 5, D: 0}, {Kind: model.Propose, A: 0, B: 0}, holds(1, 0),
		{Kind: model.Campaign, A: 1}, votes(2, 1), votes(3, 1), {Kind: model.Win, A: 1, M: memberB | memberC | memberD},
		gets(2, 2, 2), gets(2, 3, 2), {Kind: model.Commit, A: 1, C: 2},
		{Kind: model.Send, A: 1, B: 1, C: 4, D: 1}, holds(2, 1), holds(3, 1),
		{Kind: model.Send, A: 2, B: 2, C: revision, D: 1},
		{Kind: model.Propose, A: 1, B: 2}, // marked
		holds(2, 2), holds(3, 2), {Kind: model.Decide, A: 2},
		{Kind: model.Campaign, A: 2}, votes(3, 2), votes(0, 2), {Kind: model.Win, A: 2, M: memberA | memberC | memberD},
		gets(3, 1, 3),
		{Kind: model.Campaign, A: 1}, votes(0, 1), votes(3, 1), {Kind: model.Win, A: 1, M: memberA | memberB | memberD},
		gets(4, 3, 6), gets(4, 0, 6), {Kind: model.Commit, A: 1, C: 6},
	}}
}

// payloadScript: a client sends P0 and P0', of other keys, under one id. A (term 1) answers P0@2 fast, C holds its record. D
// (term 2) answers P0'@3, whose record B holds, and A, too, though its log has P0: the marked step. C (term 3), with the votes
// of A and B, finds two holders of either.
func payloadScript() *Finding {
	sc := *scenarios["liar4"]
	sc.Proposals, sc.MaxTerm, sc.Footprint, sc.Lies = 1, 3, [model.MaxProposals]uint8{1}, [model.MaxProposals]uint8{2}
	votes := func(who, c int8) model.Action { return model.Action{Kind: model.Vote, A: who, B: c} }
	gets := func(term, who, upTo int8) model.Action {
		return model.Action{Kind: model.Receive, A: term, B: who, C: upTo}
	}
	holds := func(who, slot int8) model.Action { return model.Action{Kind: model.Record, A: who, B: slot} }
	return &Finding{model: model.New(&sc, rules.Set{}), trace: []model.Action{
		{Kind: model.Send, A: 0, B: 0, C: 2, D: 0}, {Kind: model.Propose, A: 0, B: 0}, holds(2, 0),
		{Kind: model.Campaign, A: 3}, votes(0, 3), votes(1, 3), votes(2, 3),
		{Kind: model.Win, A: 3, M: memberB | memberC | memberD},
		gets(2, 2, 2), gets(2, 1, 2), {Kind: model.Commit, A: 3, C: 2},
		{Kind: model.Send, A: 1, B: 0, C: 3, D: 3, M: 1}, holds(1, 1), {Kind: model.Propose, A: 3, B: 1},
		holds(0, 1), // marked
		{Kind: model.Decide, A: 1},
		{Kind: model.Campaign, A: 2}, votes(1, 2), votes(0, 2), {Kind: model.Win, A: 2, M: three},
		gets(3, 1, 5), gets(3, 3, 5), {Kind: model.Commit, A: 2, C: 5},
	}}
}
