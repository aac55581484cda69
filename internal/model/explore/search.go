package explore

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model"
)

// bounds are the small worlds that are searched breadth first, all with three voters. Steps are coarser than in a walk: at
// once, a leader commits as far as it can, members apply, and proposers count their answers.
var bounds = map[string]*model.Scenario{
	"least":     bounded("least", 0, 2, []int8{2}, 1),
	"one2":      bounded("one2", 1, 2, []int8{2, 3}, 1),
	"one3":      bounded("one3", 1, 3, []int8{2}, 1),
	"tie2":      bounded("tie2", 0, 2, []int8{2}, 1, 1, 2),
	"disjoint2": bounded("disjoint2", 0, 2, []int8{2, 3}, 1, 1, 2),
	"conflict2": bounded("conflict2", 0, 2, []int8{2, 3}, 1, 1, 1),
	"retry2":    bounded("retry2", 0, 2, []int8{2, 3}, 2, 1),
	"read2":     withReads(bounded("read2", 0, 2, []int8{2}, 1)),
	"read3":     withReads(bounded("read3", 1, 3, []int8{2}, 1)),
}

// bounded is a bound with one proposal on key a, or proposals with the given footprints.
func bounded(name string, crashes, terms int8, revisions []int8, attempts int8, footprints ...uint8) *model.Scenario {
	s := fixed(name, 3, model.Config{Old: three})
	if len(footprints) == 0 {
		footprints = []uint8{1}
	}
	s.Proposals = copy(s.Footprint[:], footprints)
	s.MaxTerm, s.Crashes, s.Revisions, s.Attempts = terms, crashes, revisions, attempts
	return s
}

func withReads(s *model.Scenario) *model.Scenario {
	s.Reads = true
	return s
}

// Bounds returns the names of the bounds.
func Bounds() []string { return slices.Sorted(maps.Keys(bounds)) }

// SearchResult is how far a search came. It visited all states that are reached in fewer than Depth steps; if Complete, all
// states.
type SearchResult struct {
	States, Transitions int
	Depth               int
	Complete            bool
	Elapsed             time.Duration
}

// search is a breadth-first search that remembers how it reached each state.
type search struct {
	m      *model.Model
	seen   map[uint64]struct{}
	parent []int32
	via    []model.Action
	steps  int
	acts   []model.Action
}

type found struct {
	id     int32
	packed []byte
}

// Search visits the states of a bound under rules, until all are visited, or most states, or the time is over.
func Search(name string, r rules.Set, most int, limit time.Duration) (*Finding, SearchResult, error) {
	sc := bounds[name]
	if sc == nil {
		return nil, SearchResult{}, fmt.Errorf("there is no bound %q: there are %v", name, Bounds())
	}
	b := &search{m: model.New(sc, r), seen: map[uint64]struct{}{}}
	start := time.Now()
	var s model.State
	b.m.Begin(&s)
	b.seen[model.Canonical(&s)] = struct{}{}
	b.parent, b.via = append(b.parent, -1), append(b.via, model.Action{})
	level := []found{{0, model.Pack(&s, nil)}}
	res := SearchResult{}
	for ; len(level) > 0; res.Depth++ {
		var next []found
		for k := range level {
			if len(b.parent) >= most || k%256 == 0 && limit > 0 && time.Since(start) > limit {
				res.States, res.Transitions, res.Elapsed = len(b.parent), b.steps, time.Since(start)
				return nil, res, nil
			}
			var f *Finding
			if next, f = b.expand(&level[k], next); f != nil {
				res.States, res.Transitions, res.Elapsed = len(b.parent), b.steps, time.Since(start)
				return f, res, nil
			}
			level[k].packed = nil
		}
		level = next
	}
	res.States, res.Transitions, res.Complete, res.Elapsed = len(b.parent), b.steps, true, time.Since(start)
	return nil, res, nil
}

// expand takes every action in a state.
func (b *search) expand(n *found, next []found) ([]found, *Finding) {
	var s model.State
	model.Unpack(n.packed, &s)
	b.acts = b.actions(&s, b.acts[:0])
	c := s
	for _, a := range b.acts {
		ok, bad := b.m.Step(&c, a) // an impossible action leaves c as it is
		if !ok {
			continue
		}
		b.steps++
		if bad == "" {
			bad = b.atOnce(&c)
		}
		h := model.Canonical(&c)
		if _, dup := b.seen[h]; dup && bad == "" {
			c = s
			continue
		}
		b.seen[h] = struct{}{}
		id := int32(len(b.parent))
		b.parent, b.via = append(b.parent, n.id), append(b.via, a)
		if bad != "" {
			return next, b.finding(id, bad)
		}
		next = append(next, found{id, model.Pack(&c, nil)})
		c = s
	}
	return next, nil
}

// finding rebuilds the path to a state, with the steps that were taken at once.
func (b *search) finding(id int32, broken string) *Finding {
	var way []model.Action
	for i := id; i > 0; i = b.parent[i] {
		way = append(way, b.via[i])
	}
	slices.Reverse(way)
	var s model.State
	b.m.Begin(&s)
	var trace []model.Action
	for _, a := range way {
		trace = append(trace, a)
		if _, bad := b.m.Step(&s, a); bad != "" {
			break
		}
		for _, o := range b.atOnceActions(&s) {
			if ok, bad := b.m.Step(&s, o); ok {
				trace = append(trace, o)
				if bad != "" {
					break
				}
			}
		}
	}
	return &Finding{Broken: broken, model: b.m, trace: trace}
}

// atOnceActions are the steps that a search takes at once: members apply the entries that they know to be committed, and
// proposers count the answers that are there.
func (b *search) atOnceActions(s *model.State) (all []model.Action) {
	for i := range int8(b.m.Scenario.Members) {
		all = append(all, model.Action{Kind: model.Apply, A: i, C: s.M[i].Commit})
		for p := range int8(b.m.Scenario.Proposals) {
			all = append(all, model.Action{Kind: model.Answer, A: i, B: p})
		}
	}
	for j := range int8(model.MaxAttempts) {
		all = append(all, model.Action{Kind: model.Decide, A: j})
	}
	return all
}

func (b *search) atOnce(s *model.State) string {
	for _, a := range b.atOnceActions(s) {
		if _, bad := b.m.Step(s, a); bad != "" {
			return bad
		}
	}
	return ""
}
