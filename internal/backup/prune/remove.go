package prune

import (
	"bytes"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/consensus"
)

// object is to be removed.
type object struct {
	name string
	size int64
}

// remove removes so many objects, so many at once, and calls then when all are gone. Their names are made one by one.
func (p *Pruner) remove(all int, of func(i int) object, atOnce int, then func()) {
	next, under := 0, 0
	var more func()
	more = func() {
		for under < atOnce && next < all {
			o := of(next)
			next++
			if p.config.DryRun {
				p.removed(&o)
				continue
			}
			under++
			p.do(Op{Kind: Delete, Name: o.name}, func(*Outcome) {
				under--
				p.removed(&o)
				more()
			})
		}
		if under == 0 && next == all {
			next++ // then is called once
			then()
		}
	}
	more()
}

func (p *Pruner) removed(o *object) {
	p.round.report.Removed++
	p.round.report.Bytes += o.size
}

// removeFiles removes files that no manifest names. They were named by none before this round began, either: what the
// manifests name that go now stays until the next round.
func (p *Pruner) removeFiles() {
	r := p.round
	now := r.placeTime()
	if r.blocked != "" || r.late || now == 0 || now-r.noted < ManifestGrace.Milliseconds() {
		p.note()
		return
	}
	type sized struct {
		hash backup.Hash
		size int64
	}
	var gone []sized
	for hash, f := range r.files {
		if !f.named && (now-f.time >= FileGrace.Milliseconds() || p.config.Faults.Young) {
			gone = append(gone, sized{hash, f.size})
		}
	}
	slices.SortFunc(gone, func(a, b sized) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	r.files = nil
	p.remove(len(gone), func(i int) object {
		return object{backup.FileName(p.config.Cluster, gone[i].hash), gone[i].size}
	}, deletes, p.note)
}

// placeTime is when the place took the newest base that is whole, by its clock: it is later now. Zero: not known.
func (r *round) placeTime() (at int64) {
	for i := range r.report.Plan.Fates {
		if f := &r.report.Plan.Fates[i]; f.State == keep.Whole {
			at = f.Taken
		}
	}
	return at
}

// note notes what goes.
func (p *Pruner) note() {
	r, plan := p.round, p.round.report.Plan
	r.looked = true
	var gone []*keep.Fate
	for i := range plan.Fates {
		if f := &plan.Fates[i]; !f.Kept {
			gone = append(gone, f)
		}
	}
	then := func() {
		p.remove(len(gone), func(i int) object { return object{gone[i].String(), p.seen[gone[i].BaseName].size} }, 1,
			p.removeLog)
	}
	noted := consensus.Index(0)
	if n := len(r.notes); n > 0 {
		noted = r.notes[n-1].Floor
	}
	switch {
	case plan.Floor == 0:
		p.finish()
		return
	case p.config.DryRun, len(gone) == 0 && noted >= plan.Floor:
		then()
		return
	}
	k := backup.Kept{Cluster: backup.Hex(p.config.Cluster), Member: backup.Hex(p.config.Member), Floor: max(plan.Floor, noted),
		From: plan.From, Time: p.now, Rule: p.config.Rule.String()}
	name, content := k.Encode()
	p.do(Op{Kind: Put, Name: name.String(), Content: content}, func(*Outcome) {
		r.notes = append(r.notes, name)
		then()
	})
}

// removeLog removes the segments that no base needs.
func (p *Pruner) removeLog() {
	for i := range p.round.report.Plan.Fates {
		if f := &p.round.report.Plan.Fates[i]; !f.Kept {
			delete(p.seen, f.BaseName)
		}
	}
	p.removeEpochs(slices.Sorted(maps.Keys(p.round.firsts)))
}

func (p *Pruner) removeEpochs(epochs []uint64) {
	if len(epochs) == 0 {
		p.removeGaps("")
		return
	}
	prefix := p.prefix(backup.LogPrefix)
	p.removeSegments(epochPrefix(prefix, epochs[0]), epochPrefix(prefix, epochs[0]),
		func() { p.removeEpochs(epochs[1:]) })
}

// removeSegments removes segments of an epoch, page by page: they are sorted by their first entries.
func (p *Pruner) removeSegments(prefix, after string, then func()) {
	floor := p.round.report.Plan.Floor
	p.do(Op{Kind: List, Name: prefix, After: after}, func(o *Outcome) {
		var gone []object
		more := o.More && len(o.Listed) > 0
		for i := range o.Listed {
			n, err := backup.ParseSegment(o.Listed[i].Name)
			switch {
			case err != nil:
			case n.First > floor:
				more = false
			case n.End.Index <= floor:
				gone = append(gone, object{o.Listed[i].Name, o.Listed[i].Size})
			}
		}
		p.remove(len(gone), func(i int) object { return gone[i] }, deletes, func() {
			if more {
				p.removeSegments(prefix, o.Listed[len(o.Listed)-1].Name, then)
				return
			}
			then()
		})
	})
}

// removeGaps removes the notes of gaps that end before what is kept, page by page, and then all notes of what was removed but
// the last.
func (p *Pruner) removeGaps(after string) {
	p.do(Op{Kind: List, Name: p.prefix(backup.GapPrefix), After: after}, func(o *Outcome) {
		var gone []object
		for i := range o.Listed {
			l := &o.Listed[i]
			if n, err := backup.ParseGap(l.Name); err == nil && n.Until <= p.round.report.Plan.Floor {
				gone = append(gone, object{l.Name, l.Size})
			}
		}
		p.remove(len(gone), func(i int) object { return gone[i] }, 1, func() {
			if o.More && len(o.Listed) > 0 {
				p.removeGaps(o.Listed[len(o.Listed)-1].Name)
				return
			}
			p.removeNotes()
		})
	})
}

func (p *Pruner) removeNotes() {
	old := max(0, len(p.round.notes)-1)
	if p.config.DryRun {
		old = 0
	}
	p.remove(old, func(i int) object { return object{name: p.round.notes[i].String()} }, 1, p.finish)
}
