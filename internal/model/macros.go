package model

import "math/rand/v2"

// A walk mixes single steps with macros. A macro queues a likely run of steps (a fast round, an election, a round of
// replication), any of which may be left out, so that deep states are met often. Each walk draws its own weights, some
// of them zero (swarm testing), and its own footprints.
type walker struct {
	m      *Model
	s      *state
	r      *rand.Rand
	queue  []action
	weight [macros]int
	drop   int // per cent of a macro's steps that are left out
	lose   int // per cent of the fast rounds whose Propose is lost
	trace  []action
	plan   []macro // macros to run before the weights apply
	away   int8    // a member that hears nobody for a while, or -1
}

type macro int

const (
	fastRound macro = iota
	retryRound
	slowRound
	lossyRound // a fast round of which about half is lost
	orphanRound
	election
	replication
	partial // one append of the newest leader to one member, a random part of its log
	touch   // the newest leader makes its term known, not its entries
	settle  // replicate, commit, tell, apply
	commits
	applies
	inference
	lateAppend // of any term
	crashOne
	crashAll
	report // of orphans
	changeOne
	changeRound
	deliver // a record or proposal of any slot, at any member, late
	finish  // a proposer reads its answers
	singleVote
	singleWin
	hint
	hintAll
	readStep
	readRound
	snapshots
	handOver
	leaseRound
	ticks
	surviveOne
	isolate    // the reader, a leader, or anybody, until heal
	heal       //
	ownAppend  // a member gets more of the log of the term that it is in
	readBegins // a read is asked and nothing is confirmed
	readEnds   // every way to confirm it is tried
	leaderRead // a member that believes to lead reads
	whisper    // pre-votes reach the reader, wherever it is
	comeback   // a former leader is elected
	tellPart   // members get parts of the newest log, with the commit index
	macros
)

func (w *walker) n(k int) int8        { return int8(w.r.IntN(k)) }
func (w *walker) chance(p int) bool   { return w.r.IntN(100) < p }
func (w *walker) member() int8        { return w.n(w.m.scenario.Members) }
func (w *walker) members() int8       { return int8(w.m.scenario.Members) }
func (w *walker) always(a action)     { w.queue = append(w.queue, a) }
func pick[T any](w *walker, o ...T) T { return o[w.r.IntN(len(o))] }

func (w *walker) push(a action) {
	if !w.chance(w.drop) && !w.unheard(a) {
		w.always(a)
	}
}

// unheard reports whether an action is a message to the member that hears nobody.
func (w *walker) unheard(a action) bool {
	switch a.Kind {
	case receive, preVote, snapshot:
		return a.B == w.away
	case vote, record, echo, tell:
		return a.A == w.away
	}
	return false
}

func (w *walker) shuffle(from int) {
	q := w.queue[from:]
	w.r.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
}

// leader picks a member that believes to lead, the newest term mostly, or -1.
func (w *walker) leader() int8 {
	best := int8(-1)
	for i := range w.members() {
		if w.s.M[i].Role == leader && (best < 0 || w.s.M[i].Term > w.s.M[best].Term && w.chance(85)) {
			best = i
		}
	}
	return best
}

// fill queues the next macro.
func (w *walker) fill() {
	total := 0
	for _, x := range w.weight {
		total += x
	}
	k, x := macro(0), w.r.IntN(total)
	for x >= w.weight[k] {
		x -= w.weight[k]
		k++
	}
	if len(w.plan) > 0 {
		k, w.plan = w.plan[0], w.plan[1:]
	}
	drop, lose := w.drop, w.lose
	w.run(k)
	w.drop, w.lose = drop, lose
}

func (w *walker) run(k macro) {
	switch {
	case k <= orphanRound:
		w.fastRound(k)
	case k <= settle:
		w.logRound(k)
	case k <= changeRound:
		w.memberStep(k)
	case k <= singleWin:
		w.singleStep(k)
	case k <= readRound:
		w.readMacro(k)
	case k <= surviveOne:
		w.rareMacro(k)
	default:
		w.guided(k)
	}
}

func (w *walker) fastRound(k macro) {
	s := w.s
	switch k {
	case lossyRound:
		w.drop, w.lose = 55, 10
	case orphanRound:
		w.lose = 100
	}
	slot, p := int8(-1), w.n(w.m.scenario.Proposals)
	for i := range s.A {
		if !s.A[i].Used {
			slot = int8(i)
			break
		}
	}
	if slot < 0 || has(s.Reported, p) || k != retryRound && has(s.Invoked, p) && w.chance(70) {
		return
	}
	l := w.leader()
	from := l
	if l < 0 || w.chance(15) {
		from = w.member()
	}
	revision := w.revision(from)
	if k == slowRound {
		revision = 0
	}
	w.always(action{Kind: send, A: slot, B: p, C: revision, D: from})
	at := len(w.queue)
	if l >= 0 && !w.chance(w.lose) {
		w.push(action{Kind: propose, A: l, B: slot})
	}
	for i := range w.members() {
		if i != l && revision > 0 {
			w.push(action{Kind: record, A: i, B: slot})
		}
	}
	w.shuffle(at)
	if w.m.rules[LeaderEvaluatesLate] && l >= 0 && w.chance(60) {
		w.push(action{Kind: evaluate, A: l, B: slot})
	}
	w.push(action{Kind: decide, A: slot})
}

// revision is mostly the next one after all that a member knows.
func (w *walker) revision(i int8) int8 {
	x := &w.s.M[i]
	st := w.m.applied(x)
	b := w.m.bound(x, &st)
	for j := range maxAttempts {
		if x.Pool>>j&1 == 1 {
			b = max(b, w.s.A[j].Revision)
		}
	}
	switch {
	case w.chance(15):
		return b + 2
	case w.chance(20):
		return 2 + w.n(int(b)+2)
	}
	return b + 1
}

func (w *walker) logRound(k macro) {
	s := w.s
	if k == election {
		c := w.member()
		w.push(action{Kind: campaign, A: c})
		w.votes(c)
		return
	}
	l := w.leader()
	if l < 0 {
		return
	}
	t := s.M[l].Term
	full := s.TermLog[t].N
	switch k {
	case replication:
		at := len(w.queue)
		for i := range w.members() {
			if i == l || w.chance(25) {
				continue
			}
			upTo := full
			if w.chance(35) {
				upTo = 1 + w.n(int(full))
			}
			w.push(action{Kind: receive, A: t, B: i, C: upTo, D: w.n(2)})
		}
		w.shuffle(at)
		if w.chance(60) {
			w.push(action{Kind: commit, A: l, C: full})
		}
	case partial:
		w.push(action{Kind: receive, A: t, B: w.member(), C: max(1, full-w.n(4)), D: w.n(2)})
	case touch:
		for i := range w.members() {
			if w.chance(60) {
				w.push(action{Kind: receive, A: t, B: i, C: 1})
			}
		}
	case settle:
		w.settle(l, t, full)
	}
}

func (w *walker) votes(c int8) {
	at := len(w.queue)
	for i := range w.members() {
		if i != c {
			w.push(action{Kind: vote, A: i, B: c})
		}
	}
	w.shuffle(at)
	w.push(action{Kind: win, A: c, C: w.n(2)})
}

func (w *walker) settle(l, t, full int8) {
	for told := range int8(2) {
		for i := range w.members() {
			if !w.chance(85) {
				continue
			}
			w.push(action{Kind: receive, A: t, B: i, C: full, D: told})
			if told == 1 {
				w.push(action{Kind: apply, A: i, C: full})
			}
		}
		if told == 0 {
			w.push(action{Kind: commit, A: l, C: full})
			w.push(action{Kind: apply, A: l, C: full})
		}
	}
}

// between draws an index above low, mostly the highest.
func (w *walker) between(low, high int8) int8 {
	if high > low && w.chance(40) {
		return low + 1 + w.n(int(high-low))
	}
	return high
}

func (w *walker) memberStep(k macro) {
	s, l := w.s, w.leader()
	i := w.member()
	switch k {
	case commits:
		if l >= 0 {
			upTo := w.between(s.M[l].Commit, s.M[l].Log.N)
			w.push(action{Kind: commit, A: l, C: upTo})
			if w.chance(50) {
				w.push(action{Kind: apply, A: l, C: upTo})
			}
		}
	case applies:
		if x := &s.M[i]; x.Commit > x.Applied {
			w.push(action{Kind: apply, A: i, C: w.between(x.Applied, x.Commit)})
		}
	case inference:
		w.push(action{Kind: infer, A: i, C: w.between(s.M[i].Commit, s.M[i].Log.N)})
	case lateAppend:
		if t := 1 + w.n(maxTerm); s.LeaderOf[t] >= 0 {
			w.push(action{Kind: receive, A: t, B: i, C: 1 + w.n(int(s.TermLog[t].N)), D: w.n(2)})
		}
	case crashOne:
		if l >= 0 && w.chance(60) {
			i = l
		}
		w.crash(i)
	case crashAll:
		for i := range w.members() {
			w.crash(i)
		}
	case report:
		for j := range int8(maxAttempts) {
			if l >= 0 && s.M[i].Pool>>j&1 == 1 {
				w.push(action{Kind: orphan, A: i, B: j, C: l})
			}
		}
	case changeOne:
		if l >= 0 && len(w.m.scenario.Configs) > 1 {
			w.push(action{Kind: change, A: l, B: w.n(len(w.m.scenario.Configs))})
		}
	case changeRound:
		if l >= 0 {
			w.changeRound(l)
		}
	}
}

// crash restarts a member with its store as it is, empty, or anywhere between.
func (w *walker) crash(i int8) {
	x := &w.s.M[i]
	at := pick(w, 0, x.Applied, w.n(int(x.Applied)+1))
	w.push(action{Kind: crash, A: i, C: at, D: pick(w, at, at, x.Commit)})
}

func (w *walker) changeRound(l int8) {
	s := w.s
	cfg, _ := w.m.config(&s.M[l].Log)
	next := w.m.scenario.Next[cfg]
	if len(next) == 0 {
		return
	}
	at, t := s.M[l].Log.N+1, s.M[l].Term
	loss := pick(w, 20, 50, 80, 100)
	w.push(action{Kind: change, A: l, B: next[w.r.IntN(len(next))]})
	for i := range w.members() {
		if !w.chance(loss) {
			w.push(action{Kind: receive, A: t, B: i, C: at})
		}
	}
	if !w.chance(75) {
		return
	}
	w.push(action{Kind: commit, A: l, C: at})
	w.push(action{Kind: apply, A: l, C: at})
	for i := range w.members() {
		if !w.chance(40) {
			w.push(action{Kind: receive, A: t, B: i, C: at, D: 1})
			w.push(action{Kind: apply, A: i, C: at})
		}
	}
}

func (w *walker) singleStep(k macro) {
	switch k {
	case deliver:
		j := w.n(maxAttempts)
		t := &w.s.A[j]
		if !t.Used {
			return
		}
		w.push(action{Kind: pick(w, record, record, propose), A: w.member(), B: j})
		if t.Pending {
			w.push(action{Kind: evaluate, A: t.FastBy, B: j})
		}
	case finish:
		p := w.n(w.m.scenario.Proposals)
		w.push(pick(w, action{Kind: decide, A: w.n(maxAttempts)}, action{Kind: answer, A: w.member(), B: p},
			action{Kind: answerAbort, A: w.member(), B: p}))
	case singleVote:
		w.push(action{Kind: vote, A: w.member(), B: w.member()})
	case singleWin:
		w.push(action{Kind: win, A: w.member(), C: w.n(2)})
	}
}
