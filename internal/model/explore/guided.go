package explore

import (
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model"
)

// The macros here are reads, and states that only long stories reach.

func (w *walker) readMacro(k macro) {
	r := &w.s.R
	switch k {
	case hint:
		w.push(model.Action{Kind: model.PreVote, A: w.member(), B: w.member()})
	case hintAll:
		a := w.member()
		for i := range w.members() {
			w.push(model.Action{Kind: model.PreVote, A: a, B: i})
		}
	case readStep:
		w.push(pick(w, model.Action{Kind: model.Ask, A: w.member()}, model.Action{Kind: model.Take},
			model.Action{Kind: model.Hand}, model.Action{Kind: model.Word},
			model.Action{Kind: model.Tell, A: w.member()}, model.Action{Kind: model.Echo, A: w.member(), B: r.Leader},
			model.Action{Kind: model.Confirm, B: 1 + w.n(2)}, model.Action{Kind: model.Serve}))
	case readRound:
		if r.Stage == model.NoRead || w.s.M[r.Reader].Term != r.Term {
			w.push(model.Action{Kind: model.Ask, A: w.member()})
		}
		at := len(w.queue)
		w.push(model.Action{Kind: model.Take})
		for i := range w.members() {
			w.push(model.Action{Kind: model.Tell, A: i})
		}
		w.shuffle(at)
		w.push(model.Action{Kind: model.Word})
		for i := range w.members() {
			if w.chance(50) {
				w.push(model.Action{Kind: model.Echo, A: i, B: r.Leader})
			}
		}
		w.readEnd()
	}
}

// readEnd tries every way to confirm the read.
func (w *walker) readEnd() {
	r := &w.s.R
	w.push(model.Action{Kind: model.Hand})
	w.push(model.Action{Kind: model.Confirm, B: 1})
	w.push(model.Action{Kind: model.Confirm, B: 2})
	x := &w.s.M[r.Reader]
	w.push(model.Action{Kind: model.Apply, A: r.Reader, C: w.between(x.Applied, x.Commit)})
	w.push(model.Action{Kind: model.Serve})
}

func (w *walker) rareMacro(k macro) {
	s, l := w.s, w.leader()
	if k == ticks {
		for range 1 + w.r.IntN(4) {
			w.push(model.Action{Kind: model.Tick})
		}
		return
	}
	if k == surviveOne && w.m.Scenario.Disks {
		i := w.member()
		a := model.Action{Kind: model.Lose, A: i, D: w.n(2)}
		a.C = a.D * w.n(int(s.M[i].Log.N)+1)
		w.push(a)
		return
	}
	if k == surviveOne {
		w.push(model.Action{Kind: model.Survive, A: w.member(), M: uint8(w.r.IntN(32))})
		return
	}
	if l < 0 {
		return
	}
	switch k {
	case snapshots:
		x := &s.M[l]
		w.push(model.Action{Kind: model.Snapshot, A: l, B: w.member(), C: pick(w, x.Applied, x.Log.N, 1+w.n(int(x.Log.N)))})
	case handOver:
		heir := w.member()
		w.push(model.Action{Kind: model.Transfer, A: l, B: heir})
		w.push(model.Action{Kind: model.Receive, A: s.M[l].Term, B: heir, C: s.M[l].Log.N})
		w.push(model.Action{Kind: model.TimeoutNow, A: l})
		w.votes(heir)
		if w.chance(50) {
			w.push(model.Action{Kind: model.Transfer, A: l, B: -1})
		}
	case leaseRound:
		w.push(model.Action{Kind: model.Round, A: l})
		for i := range w.members() {
			w.push(model.Action{Kind: model.Echo, A: i, B: l})
			if w.chance(10) {
				w.push(model.Action{Kind: model.Tick})
			}
		}
	}
}

// guided queues macros that aim at states that only long stories reach.
func (w *walker) guided(k macro) {
	s := w.s
	switch k {
	case isolate:
		w.away = pick(w, w.leader(), w.member())
		if s.R.Stage != model.NoRead {
			w.away = s.R.Reader
		}
	case heal:
		w.away = -1
	case ownAppend:
		i := pick(w, w.member(), s.R.Reader)
		if t := s.M[i].Term; s.LeaderOf[t] >= 0 {
			w.always(model.Action{Kind: model.Receive, A: t, B: i, C: w.between(0, s.TermLog[t].N), D: w.n(2)})
		}
	case readBegins:
		w.readBegins()
	case readEnds:
		w.readEnd()
	case leaderRead:
		for i := range w.members() {
			if s.M[i].Role != model.Leader || w.chance(30) {
				continue
			}
			for _, kind := range []model.Kind{model.Ask, model.Take, model.Hand} {
				w.always(model.Action{Kind: kind, A: i})
			}
			w.always(model.Action{Kind: model.Apply, A: i, C: s.M[i].Commit})
			w.always(model.Action{Kind: model.Serve})
			return
		}
	case tellPart:
		for i := range w.members() {
			if l := w.leader(); l >= 0 && l != i {
				t := s.M[l].Term
				w.push(model.Action{Kind: model.Receive, A: t, B: i, C: 1 + w.n(int(s.TermLog[t].N)), D: 1})
			}
		}
	case comeback:
		c := s.LeaderOf[1+w.n(2)]
		if c < 0 || s.M[c].Role == model.Leader {
			c = s.LeaderOf[1]
		}
		if c >= 0 {
			w.push(model.Action{Kind: model.Campaign, A: c})
			w.push(model.Action{Kind: model.Campaign, A: c})
			w.votes(c)
		}
	case whisper:
		for i := range w.members() {
			w.always(model.Action{Kind: model.PreVote, A: i, B: s.R.Reader})
		}
	}
}

// readBegins begins a read at a member whose log has many entries that the member does not know to be committed.
func (w *walker) readBegins() {
	s := w.s
	open := func(i int8) int8 { return s.M[i].Log.N - s.M[i].Commit }
	reader := w.member()
	for i := range w.members() {
		if w.chance(60) && s.M[i].Role == model.Follower && open(i) > open(reader) {
			reader = i
		}
	}
	w.always(model.Action{Kind: model.Ask, A: reader})
	w.always(model.Action{Kind: model.Take})
	for i := range w.members() {
		w.push(model.Action{Kind: model.Tell, A: i})
		if l := s.LeaderOf[s.M[reader].Term]; l >= 0 {
			w.push(model.Action{Kind: model.Echo, A: i, B: l})
		}
	}
	w.push(model.Action{Kind: model.Word})
	if w.m.Rules[rules.ReadUncommitted] {
		w.push(model.Action{Kind: model.Hand})
	}
}
