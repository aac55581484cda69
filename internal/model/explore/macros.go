package explore

import (
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model"
)

import "math/rand/v2"

// A walk mixes single steps with macros. A macro queues a likely run of steps (a fast round, an election, a round of
// replication), any of which may be left out, so that deep states are reached often. Each walk draws its own weights, some of
// them zero (swarm testing), and its own footprints.
type walker struct {
	m      *model.Model
	s      *model.State
	r      *rand.Rand
	queue  []model.Action
	weight [macros]int
	drop   int // per cent of a macro's steps that are left out
	lose   int // per cent of the fast rounds whose Propose is lost
	trace  []model.Action
	plan   []macro // macros to run before the weights apply
	away   int8    // a member that receives no message for a while, or -1
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
	partial // one append of the newest leader to one member: a random part of its log
	touch   // the newest leader sends its term, without entries
	settle  // replicate, commit, send the commit index, apply
	commits
	applies
	inference
	lateAppend // an append of any term
	crashOne
	crashAll
	report // a report of orphans
	changeOne
	changeRound
	deliver // a record or proposal of any slot, to any member, late
	finish  // a proposer counts its answers
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
	isolate // the reader, a leader, or any member, until heal
	heal
	ownAppend  // a member receives more of the log of its own term
	readBegins // a read begins and is not confirmed
	readEnds   // every way to confirm it is tried
	leaderRead // a member that considers itself leader reads
	whisper    // pre-votes reach the reader, wherever it is
	comeback   // a former leader is elected
	tellPart   // members receive parts of the newest log, with the commit index
	macros
)

func (w *walker) n(k int) int8          { return int8(w.r.IntN(k)) }
func (w *walker) chance(p int) bool     { return w.r.IntN(100) < p }
func (w *walker) member() int8          { return w.n(w.m.Scenario.Members) }
func (w *walker) members() int8         { return int8(w.m.Scenario.Members) }
func (w *walker) always(a model.Action) { w.queue = append(w.queue, a) }
func pick[T any](w *walker, o ...T) T   { return o[w.r.IntN(len(o))] }

func (w *walker) push(a model.Action) {
	if !w.chance(w.drop) && !w.unheard(a) {
		w.always(a)
	}
}

// unheard reports whether an action is a message to the isolated member.
func (w *walker) unheard(a model.Action) bool {
	switch a.Kind {
	case model.Receive, model.PreVote, model.Snapshot:
		return a.B == w.away
	case model.Vote, model.Record, model.Echo, model.Tell:
		return a.A == w.away
	}
	return false
}

func (w *walker) shuffle(from int) {
	q := w.queue[from:]
	w.r.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
}

// leader picks a member that considers itself leader, mostly the one of the newest term, or -1.
func (w *walker) leader() int8 {
	best := int8(-1)
	for i := range w.members() {
		if w.s.M[i].Role == model.Leader && (best < 0 || w.s.M[i].Term > w.s.M[best].Term && w.chance(85)) {
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
	slot, p := int8(-1), w.n(w.m.Scenario.Proposals)
	for i := range s.A {
		if !s.A[i].Used {
			slot = int8(i)
			break
		}
	}
	if slot < 0 || model.Has(s.Reported, p) || k != retryRound && model.Has(s.Invoked, p) && w.chance(70) {
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
	w.always(model.Action{Kind: model.Send, A: slot, B: p, C: revision, D: from})
	if other := slot + 1; w.m.Scenario.Lies[p] != 0 && other < model.MaxAttempts && !s.A[other].Used {
		w.lie(slot, other, l, w.queue[len(w.queue)-1])
		return
	}
	at := len(w.queue)
	if l >= 0 && !w.chance(w.lose) {
		w.push(model.Action{Kind: model.Propose, A: l, B: slot})
	}
	for i := range w.members() {
		if i != l && revision > 0 {
			w.push(model.Action{Kind: model.Record, A: i, B: slot})
		}
	}
	w.shuffle(at)
	if w.m.Rules[rules.LeaderEvaluatesLate] && l >= 0 && w.chance(60) {
		w.push(model.Action{Kind: model.Evaluate, A: l, B: slot})
	}
	w.push(model.Action{Kind: model.Decide, A: slot})
}

// lie sends a second payload under the id and at the revision of the first one; each member receives one of the two.
func (w *walker) lie(slot, other, leader int8, sent model.Action) {
	sent.A, sent.M = other, 1
	w.always(sent)
	at := len(w.queue)
	if leader >= 0 && !w.chance(w.lose) {
		w.push(model.Action{Kind: model.Propose, A: leader, B: pick(w, slot, other)})
	}
	for i := range w.members() {
		if i != leader && sent.C > 0 {
			w.push(model.Action{Kind: model.Record, A: i, B: pick(w, slot, other)})
		}
	}
	w.shuffle(at)
	w.push(model.Action{Kind: model.Decide, A: slot})
	w.push(model.Action{Kind: model.Decide, A: other})
}

// revision is mostly the next one above all revisions that a member knows.
func (w *walker) revision(i int8) int8 {
	x := &w.s.M[i]
	st := w.m.Applied(x)
	b := w.m.Bound(x, &st)
	for j := range model.MaxAttempts {
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
		w.push(model.Action{Kind: model.Campaign, A: c})
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
			w.push(model.Action{Kind: model.Receive, A: t, B: i, C: upTo, D: w.n(2)})
		}
		w.shuffle(at)
		if w.chance(60) {
			w.push(model.Action{Kind: model.Commit, A: l, C: full})
		}
	case partial:
		w.push(model.Action{Kind: model.Receive, A: t, B: w.member(), C: max(1, full-w.n(4)), D: w.n(2)})
	case touch:
		for i := range w.members() {
			if w.chance(60) {
				w.push(model.Action{Kind: model.Receive, A: t, B: i, C: 1})
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
			w.push(model.Action{Kind: model.Vote, A: i, B: c})
		}
	}
	w.shuffle(at)
	w.push(model.Action{Kind: model.Win, A: c, C: w.n(2)})
}

func (w *walker) settle(l, t, full int8) {
	for told := range int8(2) {
		for i := range w.members() {
			if !w.chance(85) {
				continue
			}
			w.push(model.Action{Kind: model.Receive, A: t, B: i, C: full, D: told})
			if told == 1 {
				w.push(model.Action{Kind: model.Apply, A: i, C: full})
			}
		}
		if told == 0 {
			w.push(model.Action{Kind: model.Commit, A: l, C: full})
			w.push(model.Action{Kind: model.Apply, A: l, C: full})
		}
	}
}

// between draws an index above low, mostly the highest one.
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
			w.push(model.Action{Kind: model.Commit, A: l, C: upTo})
			if w.chance(50) {
				w.push(model.Action{Kind: model.Apply, A: l, C: upTo})
			}
		}
	case applies:
		if x := &s.M[i]; x.Commit > x.Applied {
			w.push(model.Action{Kind: model.Apply, A: i, C: w.between(x.Applied, x.Commit)})
		}
	case inference:
		w.push(model.Action{Kind: model.Infer, A: i, C: w.between(s.M[i].Commit, s.M[i].Log.N)})
	case lateAppend:
		if t := 1 + w.n(model.MaxTerm); s.LeaderOf[t] >= 0 {
			w.push(model.Action{Kind: model.Receive, A: t, B: i, C: 1 + w.n(int(s.TermLog[t].N)), D: w.n(2)})
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
		for j := range int8(model.MaxAttempts) {
			if l >= 0 && s.M[i].Pool>>j&1 == 1 {
				w.push(model.Action{Kind: model.Orphan, A: i, B: j, C: l})
			}
		}
	case changeOne:
		if l >= 0 && len(w.m.Scenario.Configs) > 1 {
			w.push(model.Action{Kind: model.Change, A: l, B: w.n(len(w.m.Scenario.Configs))})
		}
	case changeRound:
		if l >= 0 {
			w.changeRound(l)
		}
	}
}

// crash restarts a member with its store as it is, empty, or at an index between.
func (w *walker) crash(i int8) {
	x := &w.s.M[i]
	at := pick(w, 0, x.Applied, w.n(int(x.Applied)+1))
	w.push(model.Action{Kind: model.Crash, A: i, C: at, D: pick(w, at, at, x.Commit)})
}

func (w *walker) changeRound(l int8) {
	s := w.s
	cfg, _ := w.m.Config(&s.M[l].Log)
	next := w.m.Scenario.Next[cfg]
	if len(next) == 0 {
		return
	}
	at, t := s.M[l].Log.N+1, s.M[l].Term
	loss := pick(w, 20, 50, 80, 100)
	w.push(model.Action{Kind: model.Change, A: l, B: next[w.r.IntN(len(next))]})
	for i := range w.members() {
		if !w.chance(loss) {
			w.push(model.Action{Kind: model.Receive, A: t, B: i, C: at})
		}
	}
	if !w.chance(75) {
		return
	}
	w.push(model.Action{Kind: model.Commit, A: l, C: at})
	w.push(model.Action{Kind: model.Apply, A: l, C: at})
	for i := range w.members() {
		if !w.chance(40) {
			w.push(model.Action{Kind: model.Receive, A: t, B: i, C: at, D: 1})
			w.push(model.Action{Kind: model.Apply, A: i, C: at})
		}
	}
}

func (w *walker) singleStep(k macro) {
	switch k {
	case deliver:
		j := w.n(model.MaxAttempts)
		t := &w.s.A[j]
		if !t.Used {
			return
		}
		w.push(model.Action{Kind: pick(w, model.Record, model.Record, model.Propose), A: w.member(), B: j})
		if t.Pending {
			w.push(model.Action{Kind: model.Evaluate, A: t.FastBy, B: j})
		}
	case finish:
		p := w.n(w.m.Scenario.Proposals)
		w.push(pick(w, model.Action{Kind: model.Decide, A: w.n(model.MaxAttempts)}, model.Action{Kind: model.Answer,
			A: w.member(), B: p},
			model.Action{Kind: model.AnswerAbort, A: w.member(), B: p}))
	case singleVote:
		w.push(model.Action{Kind: model.Vote, A: w.member(), B: w.member()})
	case singleWin:
		w.push(model.Action{Kind: model.Win, A: w.member(), C: w.n(2)})
	}
}
