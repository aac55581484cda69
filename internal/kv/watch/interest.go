package watch

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/kv"
)

// interest is the range and the options of a watcher. Parties of equal interest form a group and share batches.
type interest struct {
	start, end string // as in keyrange.Range; of a single key, end is unused
	single     bool
	prevKV     bool
	noPut      bool
	noDelete   bool
}

func interestOf(req *Request) interest {
	in := interest{start: string(req.Key), prevKV: req.PrevKV, noPut: req.NoPut, noDelete: req.NoDelete}
	if len(req.End) == 0 {
		in.single = true
		return in
	}
	in.end = string(keyrange.From(req.Key, req.End).End)
	return in
}

// holds reports whether key, which is not before in.start, is in the range.
func (in *interest) holds(key []byte) bool {
	if in.single {
		return string(key) == in.start
	}
	return in.end == "" || string(key) < in.end
}

func (in *interest) takes(kind kv.EventKind) bool {
	if kind == kv.EventDelete {
		return !in.noDelete
	}
	return !in.noPut
}

func (in *interest) keyRange() keyrange.Range {
	if in.single {
		return keyrange.Single([]byte(in.start))
	}
	return keyrange.Range{Start: []byte(in.start), End: []byte(in.end)}
}

// picked collects indexes of a list, and copies only if they have gaps.
type picked struct {
	first, count int
	copied       []kv.Event
}

func (p *picked) add(events []kv.Event, i int) {
	switch {
	case p.copied != nil:
		p.copied = append(p.copied, events[i])
	case p.count == 0:
		p.first, p.count = i, 1
	case p.first+p.count == i:
		p.count++
	default:
		p.copied = append(append([]kv.Event(nil), events[p.first:p.first+p.count]...), events[i])
	}
}

// list returns the collected events. A few events of many are copied: a batch that waits must not keep all the others in
// memory.
func (p *picked) list(events []kv.Event) []kv.Event {
	part := p.copied
	if part == nil {
		part = events[p.first : p.first+p.count : p.first+p.count]
		if 2*p.count < len(events) {
			part = append(make([]kv.Event, 0, p.count), part...)
		}
	}
	return part
}

// group is the parties in step with the same interest.
type group struct {
	interest
	parties []*party
	hits    picked     // in the publication being matched
	missed  []kv.Event // the matched events, in a step of catch-up
}

func (g *group) add(p *party) {
	p.group, p.place = g, len(g.parties)
	g.parties = append(g.parties, p)
}

func (g *group) remove(p *party) {
	last := len(g.parties) - 1
	moved := g.parties[last]
	g.parties[p.place] = moved
	moved.place = p.place
	g.parties[last] = nil
	g.parties = g.parties[:last]
	p.group = nil
}

// directory finds the groups that a key concerns: by hash for single keys, by the tree for ranges.
type directory struct {
	groups map[interest]*group
	single map[string][]*group
	ranges tree
}

func newDirectory() directory {
	return directory{groups: map[interest]*group{}, single: map[string][]*group{}, ranges: tree{seed: rand.Uint64()}}
}

// of returns the group of an interest, and adds it if there is none.
func (d *directory) of(in interest) *group {
	g := d.groups[in]
	if g == nil {
		g = &group{interest: in}
		d.groups[in] = g
		if g.single {
			d.single[g.start] = append(d.single[g.start], g)
		} else {
			d.ranges.insert(g)
		}
	}
	return g
}

func (d *directory) add(p *party) { d.of(p.interest).add(p) }

func (d *directory) remove(p *party) {
	g := p.group
	g.remove(p)
	if len(g.parties) > 0 {
		return
	}
	delete(d.groups, g.interest)
	if !g.single {
		d.ranges.remove(g)
		return
	}
	list := d.single[g.start]
	for i := range list {
		if list[i] == g {
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(d.single, g.start)
	} else {
		d.single[g.start] = list
	}
}

// visit calls found for every group that wants an event.
func (d *directory) visit(event *kv.Event, found func(*group)) {
	wanted := func(g *group) {
		if g.takes(event.Kind) {
			found(g)
		}
	}
	for _, g := range d.single[string(event.KV.Key)] {
		wanted(g)
	}
	if d.ranges.root != nil {
		d.ranges.stab(event.KV.Key, wanted)
	}
}

// match marks event i in every group that wants it, and appends the groups for which it is the first one to touched.
func (d *directory) match(events []kv.Event, i int, touched []*group) []*group {
	d.visit(&events[i], func(g *group) {
		if g.hits.count == 0 {
			touched = append(touched, g)
		}
		g.hits.add(events, i)
	})
	return touched
}
