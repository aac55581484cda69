package check

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// image is a log as a disk holds it: terms[i] is the term at index base+1+i.
type image struct {
	base  consensus.Position
	terms []consensus.Term
}

// request is one write that was asked of a disk: entries, which replace those of the log from the first of them on, or a new
// beginning.
type request struct {
	reset *consensus.Position
	first consensus.Index
	terms []consensus.Term
}

func requestOf(entries []consensus.Entry) *request {
	r := &request{terms: make([]consensus.Term, len(entries))}
	for i := range entries {
		r.terms[i] = entries[i].Term
	}
	if len(entries) > 0 {
		r.first = entries[0].Index
	}
	return r
}

func (g *image) String() string {
	return fmt.Sprintf("%v..%d %v", g.base, g.last(), g.terms[max(0, len(g.terms)-8):])
}

func (g *image) last() consensus.Index { return g.base.Index + consensus.Index(len(g.terms)) }

func (g *image) term(index consensus.Index) (consensus.Term, bool) {
	switch {
	case index == g.base.Index:
		return g.base.Term, true
	case index < g.base.Index || index > g.last():
		return 0, false
	}
	return g.terms[index-g.base.Index-1], true
}

// apply performs a request. Entries that do not follow the log are left out, as a reader of the log would.
func (g *image) apply(r *request) {
	if r.reset != nil {
		g.base, g.terms = *r.reset, nil
	}
	if len(r.terms) == 0 || r.first > g.last()+1 {
		return
	}
	skip := consensus.Index(0)
	if r.first <= g.base.Index {
		skip = min(g.base.Index-r.first+1, consensus.Index(len(r.terms)))
	}
	g.terms = append(g.terms[:r.first+skip-g.base.Index-1:r.first+skip-g.base.Index-1], r.terms[skip:]...)
}

// common returns the index up to which a member's log in memory is durable: entries of one index and term have the same
// predecessors everywhere, which the checker of logs watches.
func (g *image) common(w *shadow) consensus.Index {
	for index := min(g.last(), w.last()); index > g.base.Index; index-- {
		inMemory, ok := w.term(index)
		if onDisk, _ := g.term(index); !ok || inMemory == onDisk {
			return index
		}
	}
	return min(g.base.Index, w.last())
}

// explains reports whether a log that was found after a crash is the synced log, followed by a prefix of the writes under way.
// A write may be cut between any two entries.
func (p *platter) explains(found *image) bool {
	now := image{base: p.log.base, terms: slices.Clone(p.log.terms)}
	if now.equals(found) {
		return true
	}
	for i := range p.pending {
		r := p.pending[i]
		if r.reset != nil {
			now.apply(&request{reset: r.reset})
			if now.equals(found) {
				return true
			}
		}
		for n := range r.terms {
			now.apply(&request{first: r.first + consensus.Index(n), terms: r.terms[n : n+1]})
			if now.equals(found) {
				return true
			}
		}
	}
	return false
}

// equals reports whether two logs end at the same index and have the same entries wherever both begin.
func (g *image) equals(other *image) bool {
	if g.last() != other.last() {
		return false
	}
	from := max(g.base.Index, other.base.Index)
	for index := g.last(); index >= from && index > 0; index-- {
		mine, _ := g.term(index)
		if theirs, _ := other.term(index); mine != theirs {
			return false
		}
	}
	return true
}

// holds reports whether an entry is in the log, or before its beginning.
func (g *image) holds(position consensus.Position) bool {
	term, ok := g.term(position.Index)
	return position.Index < g.base.Index || ok && term == position.Term
}
