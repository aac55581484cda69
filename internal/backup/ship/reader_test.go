package ship_test

import (
	"bytes"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// named is a point as names of a set of recipients have it.
func (w *world) named(index consensus.Index, set backup.Set) backup.Point {
	p := backup.Point{Index: index, Sum: w.sum(index)}
	for i := range w.secrets {
		if w.secrets[i].Set() == set {
			return w.secrets[i].Label(p)
		}
	}
	return p
}

// isNamed is whether a point has a name that it was given once.
func (w *world) isNamed(p backup.Point) bool {
	return p == w.named(p.Index, 0) || slices.ContainsFunc(w.secrets, func(s backup.Secret) bool {
		return p == w.named(p.Index, s.Set())
	})
}

func (w *world) catalog() *backup.Catalog {
	c := &backup.Catalog{Cluster: cluster}
	for _, name := range slices.Sorted(maps.Keys(w.place)) {
		if err := c.Add(name, 1); err != nil {
			w.t.Fatal(err)
		}
	}
	c.Sort()
	return c
}

// restores wants that a point comes out of the place as the member had it.
func (w *world) restores(h backup.Head) {
	w.t.Helper()
	if !w.isNamed(h.Point) || h.Revision != w.revision(h.Index) {
		w.t.Fatalf("%+v is called restorable, and entry %d had sum %x", h, h.Index, w.sum(h.Index))
	}
	bad := map[backup.Hash]bool{} // objects that nobody was told of
	for {
		p, err := w.catalog().Plan(backup.Target{Index: h.Index}, func(h backup.Hash) bool { return bad[h] })
		if err != nil {
			w.t.Fatalf("entry %d was called restorable: %v", h.Index, err)
		}
		wrong := w.replay(p, h.Index)
		if wrong == nil {
			return
		}
		bad[*wrong] = true
	}
}

// replay follows a plan and returns an object that is damaged.
func (w *world) replay(p *backup.Plan, to consensus.Index) *backup.Hash {
	w.t.Helper()
	m, err := backup.OpenManifest(&p.Base.BaseName, w.place[p.Base.String()], unmask)
	if err != nil {
		return &p.Base.Hash
	}
	for i := range m.Files {
		if backup.HashOf(w.place[backup.FileName(cluster, m.Files[i].Hash)]) != m.Files[i].Hash {
			return &p.Base.Hash
		}
	}
	if p.Base.Point != w.named(p.Base.Index, p.Base.Set) || uint64(m.Sum) != w.sum(m.Index) {
		w.t.Fatalf("base %+v", p.Base)
	}
	at := p.Base.Index
	for _, stored := range p.Segments {
		segment, err := backup.OpenSegment(&stored.SegmentName, w.place[stored.String()], unmask)
		if err != nil {
			return &stored.Hash
		}
		for i := range segment.Items {
			item, before := &segment.Items[i], int64(0)
			if i > 0 {
				before = segment.Items[i-1].Time
			}
			if item.Entry.Index == at+1 {
				at++
			}
			if want := w.history[item.Entry.Index-1]; item.Sum != want.Sum || item.Revision != want.Revision ||
				!bytes.Equal(item.Entry.Payload, want.Entry.Payload) || item.Time < before || item.Time > w.now {
				w.t.Fatalf("got %+v, want %+v", item, want)
			}
		}
	}
	if at < to {
		w.t.Fatalf("the plan for entry %d ends at %d", to, at)
	}
	return nil
}

// covered wants each entry since the first base in a segment, or in a note of a gap.
func (w *world) covered() {
	w.t.Helper()
	c := w.catalog()
	has := make([]bool, len(w.history)+2)
	for _, s := range c.Segments {
		for i := s.First; i <= s.End.Index; i++ {
			has[i] = true
		}
	}
	for _, g := range c.Gaps {
		for i := g.After + 1; i < g.Until; i++ {
			has[i] = true
		}
	}
	first := slices.IndexFunc(c.Bases, func(b backup.Base) bool { return w.whole(b.String(), w.place[b.String()]) })
	for i := int(c.Bases[first].Index) + 1; i <= len(w.history); i++ {
		if !has[i] {
			w.t.Fatalf("entry %d is in no segment and in no gap", i)
		}
	}
}
