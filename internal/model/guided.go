package model

// The macros here read, and aim at what only a long story leads to.

func (w *walker) readMacro(k macro) {
	r := &w.s.R
	switch k {
	case hint:
		w.push(action{Kind: preVote, A: w.member(), B: w.member()})
	case hintAll:
		a := w.member()
		for i := range w.members() {
			w.push(action{Kind: preVote, A: a, B: i})
		}
	case readStep:
		w.push(pick(w, action{Kind: ask, A: w.member()}, action{Kind: take}, action{Kind: hand}, action{Kind: word},
			action{Kind: tell, A: w.member()}, action{Kind: echo, A: w.member(), B: r.Leader},
			action{Kind: confirm, B: 1 + w.n(2)}, action{Kind: serve}))
	case readRound:
		if r.Stage == noRead || w.s.M[r.Reader].Term != r.Term {
			w.push(action{Kind: ask, A: w.member()})
		}
		at := len(w.queue)
		w.push(action{Kind: take})
		for i := range w.members() {
			w.push(action{Kind: tell, A: i})
		}
		w.shuffle(at)
		w.push(action{Kind: word})
		for i := range w.members() {
			if w.chance(50) {
				w.push(action{Kind: echo, A: i, B: r.Leader})
			}
		}
		w.readEnd()
	}
}

// readEnd tries every way to confirm the read.
func (w *walker) readEnd() {
	r := &w.s.R
	w.push(action{Kind: hand})
	w.push(action{Kind: confirm, B: 1})
	w.push(action{Kind: confirm, B: 2})
	x := &w.s.M[r.Reader]
	w.push(action{Kind: apply, A: r.Reader, C: w.between(x.Applied, x.Commit)})
	w.push(action{Kind: serve})
}

func (w *walker) rareMacro(k macro) {
	s, l := w.s, w.leader()
	if k == ticks {
		for range 1 + w.r.IntN(4) {
			w.push(action{Kind: tick})
		}
		return
	}
	if k == surviveOne && w.m.scenario.Disks {
		i := w.member()
		a := action{Kind: lose, A: i, D: w.n(2)}
		a.C = a.D * w.n(int(s.M[i].Log.N)+1)
		w.push(a)
		return
	}
	if k == surviveOne {
		w.push(action{Kind: survive, A: w.member(), M: uint8(w.r.IntN(32))})
		return
	}
	if l < 0 {
		return
	}
	switch k {
	case snapshots:
		x := &s.M[l]
		w.push(action{Kind: snapshot, A: l, B: w.member(), C: pick(w, x.Applied, x.Log.N, 1+w.n(int(x.Log.N)))})
	case handOver:
		heir := w.member()
		w.push(action{Kind: transfer, A: l, B: heir})
		w.push(action{Kind: receive, A: s.M[l].Term, B: heir, C: s.M[l].Log.N})
		w.push(action{Kind: timeoutNow, A: l})
		w.votes(heir)
		if w.chance(50) {
			w.push(action{Kind: transfer, A: l, B: -1})
		}
	case leaseRound:
		w.push(action{Kind: round, A: l})
		for i := range w.members() {
			w.push(action{Kind: echo, A: i, B: l})
			if w.chance(10) {
				w.push(action{Kind: tick})
			}
		}
	}
}

// guided macros aim at what only a long story leads to.
func (w *walker) guided(k macro) {
	s := w.s
	switch k {
	case isolate:
		w.away = pick(w, w.leader(), w.member())
		if s.R.Stage != noRead {
			w.away = s.R.Reader
		}
	case heal:
		w.away = -1
	case ownAppend:
		i := pick(w, w.member(), s.R.Reader)
		if t := s.M[i].Term; s.LeaderOf[t] >= 0 {
			w.always(action{Kind: receive, A: t, B: i, C: w.between(0, s.TermLog[t].N), D: w.n(2)})
		}
	case readBegins:
		w.readBegins()
	case readEnds:
		w.readEnd()
	case leaderRead:
		for i := range w.members() {
			if s.M[i].Role != leader || w.chance(30) {
				continue
			}
			for _, kind := range []actionKind{ask, take, hand} {
				w.always(action{Kind: kind, A: i})
			}
			w.always(action{Kind: apply, A: i, C: s.M[i].Commit})
			w.always(action{Kind: serve})
			return
		}
	case tellPart:
		for i := range w.members() {
			if l := w.leader(); l >= 0 && l != i {
				t := s.M[l].Term
				w.push(action{Kind: receive, A: t, B: i, C: 1 + w.n(int(s.TermLog[t].N)), D: 1})
			}
		}
	case comeback:
		c := s.LeaderOf[1+w.n(2)]
		if c < 0 || s.M[c].Role == leader {
			c = s.LeaderOf[1]
		}
		if c >= 0 {
			w.push(action{Kind: campaign, A: c})
			w.push(action{Kind: campaign, A: c})
			w.votes(c)
		}
	case whisper:
		for i := range w.members() {
			w.always(action{Kind: preVote, A: i, B: s.R.Reader})
		}
	}
}

// readBegins lets a member read whose log has much that it does not know to be committed.
func (w *walker) readBegins() {
	s := w.s
	open := func(i int8) int8 { return s.M[i].Log.N - s.M[i].Commit }
	reader := w.member()
	for i := range w.members() {
		if w.chance(60) && s.M[i].Role == follower && open(i) > open(reader) {
			reader = i
		}
	}
	w.always(action{Kind: ask, A: reader})
	w.always(action{Kind: take})
	for i := range w.members() {
		w.push(action{Kind: tell, A: i})
		if l := s.LeaderOf[s.M[reader].Term]; l >= 0 {
			w.push(action{Kind: echo, A: i, B: l})
		}
	}
	w.push(action{Kind: word})
	if w.m.rules[ReadUncommitted] {
		w.push(action{Kind: hand})
	}
}
