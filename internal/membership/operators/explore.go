package operators

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Finding is a broken law and what led to it.
type Finding struct {
	Broken string
	Moves  []string
}

// Law is the name of the law that broke.
func (f *Finding) Law() string {
	law, _, _ := strings.Cut(f.Broken, ":")
	return law
}

// Result tells how far an exploration came. All states that fewer than Depth moves lead to were visited; if Complete, all.
type Result struct {
	States, Moves, Depth int
	Complete             bool
	Elapsed              time.Duration
}

// Options bound an exploration. Zero means no bound.
type Options struct {
	Voters int // at first; zero: three
	Rules  Rules
	Wishes string // only those whose titles contain it
	Depth  int
	States int
	Time   time.Duration
}

// place is a state and how it was reached.
type place struct {
	world *world
	from  *place
	move  string
}

func (p *place) moves() []string {
	if p.from == nil {
		return nil
	}
	return append(p.from.moves(), p.move)
}

// Explore tries all sequences of moves, the shortest first, until a law breaks or a bound is reached. It is deterministic but
// for Time.
func Explore(o Options) (*Finding, Result) {
	var res Result
	begun := time.Now()
	if o.Voters == 0 {
		o.Voters = 3
	}
	seen := map[uint64]bool{}
	level := []*place{{world: begin(o.Voters, &o.Rules)}}
	all := slices.DeleteFunc(wishes(), func(one wish) bool { return !strings.Contains(one.title, o.Wishes) })
	done := func(f *Finding) (*Finding, Result) {
		res.Elapsed = time.Since(begun)
		return f, res
	}
	for ; len(level) > 0 && (o.Depth == 0 || res.Depth < o.Depth); res.Depth++ {
		var next []*place
		for _, at := range level {
			for _, m := range at.world.moves(all) {
				if o.States > 0 && res.States >= o.States || o.Time > 0 && time.Since(begun) > o.Time {
					return done(nil)
				}
				w := at.world.clone()
				m.do(w)
				w.drive()
				res.Moves++
				key := w.key()
				if seen[key] && w.broken == "" {
					continue
				}
				seen[key] = true
				res.States++
				to := &place{w, at, m.name}
				if broken := w.outlook(); broken != "" {
					return done(&Finding{broken, to.moves()})
				}
				next = append(next, to)
			}
		}
		level = next
	}
	res.Complete = true
	return done(nil)
}

// key sums up a state, but for what only people read.
func (w *world) key() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.config.Voters, w.config.Learners, w.config.Members, w.tombs, w.processes, w.hours, w.budget)
	for i := range w.jobs {
		j := &w.jobs[i]
		fmt.Fprint(h, j.Title(), j.Spec.Expected, j.Spec.After, j.State, j.Phase, j.CancelAsked, j.Expired, j.Started, j.Config,
			j.Final, j.promised, j.unknown)
	}
	if w.plan != nil {
		fmt.Fprint(h, w.plan.title, w.plan.spec.Expected, w.plan.spec.After, w.plan.jobs)
	}
	return h.Sum64()
}

// Mutation drops a rule, or several, and says what is expected of that.
type Mutation struct {
	Name   string
	Set    func(r *Rules)
	Wishes string // only those whose titles contain it are asked for
	Law    string // that breaks; empty if none does
	Why    string // if none does: why the rule is redundant
}

// Mutations returns the table of mutations.
func Mutations() []Mutation {
	return []Mutation{
		{Name: "laggards count", Set: func(r *Rules) { r.Planner.CountLaggards = true }, Law: "writes go on"},
		{Name: "plans do not name what they showed", Set: func(r *Rules) { r.PlansAreWishes = true }, Law: "plan"},
		{Name: "who is gone may be replaced", Set: func(r *Rules) { r.Planner.ReplaceTheGone = true },
			Wishes: "replace", Law: "voters"},
		{Name: "jobs may contradict each other", Set: func(r *Rules) { r.Planner.NoRivals = true },
			Why: "the second one is judged again at its turn, and fails"},
		{Name: "newcomers may take for ever to start", Set: func(r *Rules) { r.Planner.NeverOverdue = true }, Law: "queue"},
		{Name: "no job passes one that waits for a start", Set: func(r *Rules) { r.Planner.NobodyPasses = true }, Law: "queue"},
		{Name: "two members may have one name", Set: func(r *Rules) { r.Planner.AnyName = true }, Law: "names"},
		{Name: "who joins may take any vote", Set: func(r *Rules) { r.Planner.JoinTakesVotes = true }, Law: "vote"},
		{Name: "peer URLs are not checked", Set: func(r *Rules) { r.AnyAddress = true }, Law: "addresses"},
		{Name: "members that moved do not tell", Set: func(r *Rules) { r.NobodyAnnounces = true }, Law: "addresses"},
	}
}

// Try explores with the rule dropped.
func (mu *Mutation) Try(limit time.Duration) (*Finding, Result) {
	o := Options{Wishes: mu.Wishes, Time: limit}
	mu.Set(&o.Rules)
	return Explore(o)
}
