package decide_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/operator/internal/decide"
)

// leaderOf is the member of a line that leads it; empty: it has no quorum.
func (w *world) leaderOf(l *line) (leader string) {
	if w.workingOf(l) < decide.Quorum(len(l.voters)) {
		return ""
	}
	for _, name := range sorted(l.voters) {
		if w.on(l, name) && (leader == "" || l.cordoned[leader]) {
			leader = name
		}
	}
	return leader
}

// follows is the line whose leader a member follows; nil: it follows none, as one that was removed.
func (w *world) follows(name string) *line {
	for _, l := range []*line{&w.line, w.other} {
		if l != nil && (l.voters[name] || l.learners[name]) && w.on(l, name) && w.leaderOf(l) != "" {
			return l
		}
	}
	return nil
}

// serves tells whether the pod of a member is ready.
func (w *world) serves(name string) bool { return w.up(name) && w.follows(name) != nil }

// word is what a member passes on of the leader that it follows.
func (w *world) word(name string, l *line) decide.Told {
	t := decide.Told{Member: name, Epoch: l.epoch, Leader: w.ids[w.leaderOf(l)]}
	for _, other := range append(sorted(l.voters), sorted(l.learners)...) {
		t.Members = append(t.Members, decide.Member{ID: w.ids[other], Name: other, Voter: l.voters[other]})
	}
	return t
}

// told are the words of all members but one, apart from those of an epoch that claims tell to be a former one.
func (w *world) told(but string) (all []decide.Told) {
	var claims []decide.Claim
	for _, c := range w.claims {
		claims = append(claims, *c)
	}
	for _, name := range sorted(w.pods) {
		if l := w.follows(name); l != nil && name != but && !l.epoch.Former(decide.Newest(claims)) {
			all = append(all, w.word(name, l))
		}
	}
	return all
}

// lie lets the liar's word be the one that counts, since it names a later term.
func (w *world) lie(o *decide.Observed) {
	if w.liar == "" || !w.up(w.liar) || w.ids[w.liar] == 0 || o.Cluster == nil {
		return
	}
	o.Cluster.By, o.Cluster.Others, o.Cluster.Leader = w.liar, w.told(w.liar), w.ids[w.liar]
	if w.elects { // so that nobody passes on another word
		o.Cluster.Others = nil
	}
	switch w.lies {
	case 0: // it votes alone
		o.Cluster.Members = slices.DeleteFunc(o.Cluster.Members, func(m decide.Member) bool { return m.Name != w.liar })
	case 1: // and a recovery has left the others out
		o.Cluster.Members = slices.DeleteFunc(o.Cluster.Members, func(m decide.Member) bool { return m.Name != w.liar })
		o.Cluster.Epoch = decide.ParseEpoch("99-a")
	case 2: // another one was removed
		o.Cluster.Members = slices.DeleteFunc(o.Cluster.Members, func(m decide.Member) bool { return m.Name == w.denied })
	case 3: // others do not work
		for i := range o.Cluster.Members {
			m := &o.Cluster.Members[i]
			m.Active, m.CaughtUp = m.Name == w.liar, m.Name == w.liar || i%2 == 0
		}
	}
	o.Cluster.Blockers, o.Cluster.Jobs = nil, nil
	for i := range o.Cluster.Members {
		m := &o.Cluster.Members[i]
		m.Leader = m.Name == w.liar
		m.Active, m.CaughtUp = m.Active || m.Leader, m.CaughtUp || m.Leader
	}
}

// Ensure that one member which lies about the term, the epoch, the members or how they work, from some moment on, lets no pod of
// another one be stopped that works, nor a claim be deleted; and that all is as it is wanted once somebody has deleted what it has.
func TestNext_liar(t *testing.T) {
	lied, held := map[int]bool{}, 0
	for seed := range *seeds / 4 {
		w := newWorld(uint64(seed)|1<<33, 3+2*(seed%2))
		w.broken = "bad"
		var log []string
		step := func() decide.Action {
			o := w.observe()
			a := decide.Next(o)
			if a.Kind != decide.Wait {
				log = append(log, a.String())
			}
			if o.Cluster != nil && o.Contradicted() != "" {
				held++
			}
			if w.rand.IntN(8) > 0 {
				w.act(a)
			}
			w.advance()
			if w.fault != "" {
				t.Fatalf("seed %d, lies %d: %s\n%q", seed, w.lies, w.fault, log)
			}
			return a
		}
		for range 100 {
			if w.rand.IntN(5) == 0 {
				w.disturb()
			}
			step()
		}
		w.lost, w.drain, w.want.Members, w.want.Paused, w.want.Template = [4]bool{}, [4]bool{}, max(3, w.want.Members), false, "a"
		for range 200 {
			step()
		}
		voters := sorted(w.voters)
		w.rand.Shuffle(len(voters), func(i, j int) { voters[i], voters[j] = voters[j], voters[i] })
		w.liar, w.denied, w.lies = voters[0], voters[1], seed/2%4
		log = append(log, w.liar+" lies")
		for range 60 {
			if w.rand.IntN(5) == 0 {
				w.annoy()
			}
			w.elects = w.rand.IntN(4) == 0 && w.working() == len(w.voters)
			lied[w.lies] = lied[w.lies] || w.up(w.liar)
			step()
		}
		if c := w.claims[w.liar]; c != nil {
			c.Leaving = true
		}
		delete(w.pods, w.liar)
		w.liar, w.want.Template = "", "a"
		var last decide.Action
		for range 300 {
			last = step()
		}
		if last.Kind != decide.Wait || last.Why != "" || !w.asWanted() {
			t.Fatalf("seed %d, lies %d: after calm: %v; voters %v, claims %v, pods %v\n%q", seed, w.lies, last, w.voters, sorted(w.claims),
				sorted(w.pods), log)
		}
	}
	if len(lied) != 4 || held == 0 {
		t.Errorf("lies %v, held %d times", lied, held)
	}
}

// annoy lets something happen that the operator acts upon, while all nodes are well.
func (w *world) annoy() {
	switch w.rand.IntN(4) {
	case 3: // another one is away for a moment
		voters := sorted(w.voters)
		name := voters[w.rand.IntN(len(voters))]
		if p := w.pods[name]; p != nil && name != w.liar && w.up(name) && w.working() > decide.Quorum(len(voters)) {
			p.Running, p.Ended, p.Said = false, true, "evicted"
		}
	case 0:
		w.want.Template = []string{"a", "b"}[w.rand.IntN(2)]
	case 1:
		w.want.Members = 3 + 2*w.rand.IntN(2)
	case 2:
		if p := w.pods[w.liar]; p != nil && !p.Leaving {
			p.Leaving = true
		}
	}
}
