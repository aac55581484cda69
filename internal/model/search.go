package model

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// bounds are the small worlds that are searched breadth first, all with three voters. Steps are coarser than in a walk: a
// leader commits as far as it can, and members apply, and proposers read their answers, at once.
var bounds = map[string]*Scenario{
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

// bounded has one proposal on key a, or proposals with the given footprints.
func bounded(name string, crashes, terms int8, revisions []int8, attempts int8, footprints ...uint8) *Scenario {
	s := fixed(name, 3, config{Old: three})
	if len(footprints) == 0 {
		footprints = []uint8{1}
	}
	s.Proposals = copy(s.Footprint[:], footprints)
	s.MaxTerm, s.Crashes, s.Revisions, s.Attempts = terms, crashes, revisions, attempts
	return s
}

func withReads(s *Scenario) *Scenario {
	s.Reads = true
	return s
}

// Bounds returns the names of the bounds.
func Bounds() []string { return slices.Sorted(maps.Keys(bounds)) }

// SearchResult tells how far a search came. All states that are reached in fewer than Depth steps were visited; if
// Complete, all states.
type SearchResult struct {
	States, Transitions int
	Depth               int
	Complete            bool
	Elapsed             time.Duration
}

// search is a breadth-first search that remembers how each state was reached.
type search struct {
	m      *Model
	seen   map[uint64]struct{}
	parent []int32
	via    []action
	steps  int
	acts   []action
}

type found struct {
	id     int32
	packed []byte
}

// Search goes through a bound under rules, until it is complete, most states were seen, or the time is over.
func Search(name string, r Rules, most int, limit time.Duration) (*Finding, SearchResult, error) {
	sc := bounds[name]
	if sc == nil {
		return nil, SearchResult{}, fmt.Errorf("there is no bound %q: there are %v", name, Bounds())
	}
	b := &search{m: New(sc, r), seen: map[uint64]struct{}{}}
	start := time.Now()
	var s state
	b.m.begin(&s)
	b.seen[canonical(&s)] = struct{}{}
	b.parent, b.via = append(b.parent, -1), append(b.via, action{})
	level := []found{{0, pack(&s, nil)}}
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
	var s state
	unpack(n.packed, &s)
	b.acts = b.m.actions(&s, b.acts[:0])
	c := s
	for _, a := range b.acts {
		ok, bad := b.m.step(&c, a) // what is not possible leaves c as it is
		if !ok {
			continue
		}
		b.steps++
		if bad == "" {
			bad = b.m.atOnce(&c)
		}
		h := canonical(&c)
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
		next = append(next, found{id, pack(&c, nil)})
		c = s
	}
	return next, nil
}

// finding rebuilds the way to a state, with the steps that were taken at once.
func (b *search) finding(id int32, broken string) *Finding {
	var way []action
	for i := id; i > 0; i = b.parent[i] {
		way = append(way, b.via[i])
	}
	slices.Reverse(way)
	var s state
	b.m.begin(&s)
	var trace []action
	for _, a := range way {
		trace = append(trace, a)
		if _, bad := b.m.step(&s, a); bad != "" {
			break
		}
		for _, o := range b.m.atOnceActions(&s) {
			if ok, bad := b.m.step(&s, o); ok {
				trace = append(trace, o)
				if bad != "" {
					break
				}
			}
		}
	}
	return &Finding{Broken: broken, model: b.m, trace: trace}
}

// atOnceActions are the steps that a search takes at once: members apply what they know to be committed, proposers read the
// answers that are there.
func (m *Model) atOnceActions(s *state) (all []action) {
	for i := range int8(m.scenario.Members) {
		all = append(all, action{Kind: apply, A: i, C: s.M[i].Commit})
		for p := range int8(m.scenario.Proposals) {
			all = append(all, action{Kind: answer, A: i, B: p})
		}
	}
	for j := range int8(maxAttempts) {
		all = append(all, action{Kind: decide, A: j})
	}
	return all
}

func (m *Model) atOnce(s *state) string {
	for _, a := range m.atOnceActions(s) {
		if _, bad := m.step(s, a); bad != "" {
			return bad
		}
	}
	return ""
}
