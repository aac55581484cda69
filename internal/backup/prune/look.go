package prune

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// round is what is known of the place in one round.
type round struct {
	begun  map[uint64]bool // operations that the caller has taken, and that have not ended
	newest consensus.Index
	known  []kv.BackupBase
	report Report

	pages   int         // of lists
	held    int64       // bytes of what is known
	bases   []keep.Base // sorted by name
	firsts  map[uint64]consensus.Index
	notes   []backup.KeptName // sorted: the last one is the newest
	noted   int64             // when the place took the last one
	files   map[backup.Hash]*file
	late    bool   // the list and the place disagree on manifests
	blocked string // why no file is removed
	unread  int    // manifests that cannot be read
	looked  bool   // no more files are removed
}

// file is a file of bases, as the place lists it.
type file struct {
	size, time int64
	named      bool // by a manifest
}

func newRound(newest consensus.Index) *round {
	return &round{begun: map[uint64]bool{}, newest: newest, firsts: map[uint64]consensus.Index{},
		files: map[backup.Hash]*file{}}
}

// prefix is that of the cluster's objects of a kind.
func (p *Pruner) prefix(kind string) string {
	return fmt.Sprintf("%s%016x/", kind, uint64(p.config.Cluster))
}

// list lists all objects below a prefix, and calls then at the end. take returns false for one object too many.
func (p *Pruner) list(prefix, after string, take func(*Listed) bool, then func()) {
	p.do(Op{Kind: List, Name: prefix, After: after}, func(o *Outcome) {
		for i := range o.Listed {
			if !take(&o.Listed[i]) {
				p.tooMany(prefix)
				return
			}
		}
		if o.More && len(o.Listed) > 0 {
			p.list(prefix, o.Listed[len(o.Listed)-1].Name, take, then)
			return
		}
		then()
	})
}

// holds reports whether there is memory for so many bytes more.
func (p *Pruner) holds(bytes int64) bool {
	p.round.held += bytes
	return p.round.held <= p.config.MostBytes
}

func (p *Pruner) listBases(after string) {
	r := p.round
	known := r.newest == 0
	p.list(p.prefix(backup.BasePrefix), after, func(l *Listed) bool {
		n, err := backup.ParseBase(l.Name)
		if err != nil || n.Cluster != p.config.Cluster {
			return true
		}
		if _, before := p.seen[n]; !before && (!p.holds(baseBytes) || len(p.seen) == MaxBases) {
			clear(p.seen) // the next round begins as the first one of a turn does
			return false
		}
		p.seen[n] = stored{l.Size, l.Time}
		known = known || r.isNewest(&n)
		return true
	}, func() {
		r.bases = make([]keep.Base, 0, len(p.seen))
		for n, at := range p.seen {
			r.bases = append(r.bases, keep.Base{BaseName: n, Taken: at.time})
		}
		slices.SortFunc(r.bases, func(a, b keep.Base) int { return strings.Compare(a.String(), b.String()) })
		switch {
		case !known:
			p.fail(fmt.Sprintf("the place does not list the newest base, of entry %d: its list is late, or somebody has "+
				"removed it", r.newest), false)
		case len(r.bases) == 0:
			p.finish()
		default:
			p.listEpochs(p.prefix(backup.LogPrefix))
		}
	})
}

// listEpochs finds the first segment of each epoch. Names of an epoch lie together, and are sorted by their first entry.
func (p *Pruner) listEpochs(after string) {
	prefix := p.prefix(backup.LogPrefix)
	p.do(Op{Kind: List, Name: prefix, After: after}, func(o *Outcome) {
		for i := range o.Listed {
			n, err := backup.ParseSegment(o.Listed[i].Name)
			if err != nil {
				continue
			}
			if _, known := p.round.firsts[n.Epoch]; known {
				continue
			}
			if p.round.newest > 0 && n.Epoch > p.config.Epoch {
				p.fail(fmt.Sprintf("%s is of epoch %d, and the cluster of epoch %d: somebody else writes to the place, or a "+
					"recovery began another epoch. Nothing is removed while it is there", o.Listed[i].Name, n.Epoch,
					p.config.Epoch), true)
				return
			}
			p.round.firsts[n.Epoch] = n.First
			if len(p.round.firsts) > MaxEpochs {
				p.fail("the place has the log of more epochs than retention looks at", true)
				return
			}
			p.listEpochs(epochEnd(prefix, n.Epoch))
			return
		}
		if o.More && len(o.Listed) > 0 { // names that are none of segments
			p.listEpochs(o.Listed[len(o.Listed)-1].Name)
			return
		}
		p.listNotes()
	})
}

// epochPrefix begins the names of an epoch's segments.
func epochPrefix(prefix string, epoch uint64) string { return fmt.Sprintf("%s%016x-", prefix, epoch) }

// epochEnd comes after all names of an epoch's segments, and before those of the next: '.' comes after '-'.
func epochEnd(prefix string, epoch uint64) string { return fmt.Sprintf("%s%016x.", prefix, epoch) }

func (p *Pruner) listNotes() {
	r := p.round
	p.list(p.prefix(backup.KeptPrefix), "", func(l *Listed) bool {
		if n, err := backup.ParseKept(l.Name); err == nil && n.Cluster == p.config.Cluster && r.fits(&n) {
			r.notes, r.noted = append(r.notes, n), max(r.noted, l.Time)
			return p.holds(noteBytes) && len(r.notes) <= MaxNotes
		}
		return true
	}, p.listFiles)
}

// fits reports whether a note is one of members: none removes what is after the newest base. A note that somebody else made up
// would become part of all later ones.
func (r *round) fits(n *backup.KeptName) bool { return r.newest == 0 || n.Floor <= r.newest }

func (p *Pruner) listFiles() {
	r := p.round
	p.list(p.prefix(backup.FilePrefix), "", func(l *Listed) bool {
		if cluster, hash, err := backup.ParseFile(l.Name); err == nil && cluster == p.config.Cluster {
			r.files[hash] = &file{size: l.Size, time: l.Time}
			return p.holds(fileBytes)
		}
		return true
	}, func() { p.readManifests(0) })
}

// readManifests reads the manifests from one on, one after the other.
func (p *Pruner) readManifests(i int) {
	r := p.round
	if i == len(r.bases) {
		p.plan()
		return
	}
	b := &r.bases[i]
	name := b.String()
	most := backup.ManifestWithin(p.manifestBytes())
	if p.seen[b.BaseName].size > most {
		p.unreadable(b, name)
		p.readManifests(i + 1)
		return
	}
	p.do(Op{Kind: Get, Name: name, Hash: b.Hash, Most: most}, func(o *Outcome) {
		switch {
		case o.Absent: // removed meanwhile; or the place forgets, and its files must stay
			r.late = true
			delete(p.seen, b.BaseName)
			r.bases = slices.Delete(r.bases, i, i+1)
			p.readManifests(i)
			return
		case o.Damaged:
			p.unreadable(b, name)
		default:
			p.read(b, name, o.Content)
		}
		p.readManifests(i + 1)
	})
}

// manifestBytes is the memory to read a manifest in.
func (p *Pruner) manifestBytes() int64 {
	return max(p.config.MostBytes-p.round.held, p.config.MostBytes/4)
}

func (p *Pruner) read(b *keep.Base, name string, content []byte) {
	needed, err := backup.ObjectsWithin(&b.BaseName, content, p.manifestBytes())
	if err != nil {
		p.unreadable(b, name)
		return
	}
	for i := range needed {
		f := p.round.files[needed[i].Hash]
		if (f == nil || f.size != needed[i].Size) && !p.config.Faults.Lacking {
			b.State = keep.Lacking
		}
		if f != nil && !p.config.Faults.Named {
			f.named = true
		}
	}
}

func (p *Pruner) unreadable(b *keep.Base, name string) {
	b.State = keep.Unreadable
	if p.round.unread++; p.round.unread == 1 {
		p.round.blocked = "the manifest " + name + " cannot be read, and no file is removed that it may name: remove it by " +
			"hand if the base is not needed"
	}
}

// isNewest reports whether a base is the newest one that members made: by its hash, if that is known.
func (r *round) isNewest(n *backup.BaseName) bool {
	if n.Index != r.newest {
		return false
	}
	known := false
	for i := range r.known {
		if k := &r.known[i]; consensus.Index(k.Index) == r.newest {
			if known = true; k.Hash == [32]byte(n.Hash) {
				return true
			}
		}
	}
	return !known
}

// lacks reports whether the newest base lacks files.
func (r *round) lacks() (lacks bool) {
	for i := range r.bases {
		if b := &r.bases[i]; r.isNewest(&b.BaseName) && b.State != keep.Unreadable {
			if b.State == keep.Whole {
				return false
			}
			lacks = true
		}
	}
	return lacks
}

// plan plans, and goes on with what can be removed.
func (p *Pruner) plan() {
	r := p.round
	plan := keep.Make(&keep.Input{Rule: p.config.Rule, Bases: r.bases, Firsts: r.firsts, Now: p.now,
		Newest: r.newest, Epoch: p.config.Epoch, Known: r.known})
	if n := len(plan.Fates); p.config.Faults.AllLog && n > 0 && plan.Floor > 0 {
		plan.Floor = plan.Fates[n-1].Index
	}
	r.report.Plan = plan
	r.report.Lacks = r.lacks()
	slices.SortFunc(r.notes, func(a, b backup.KeptName) int {
		return cmp.Or(cmp.Compare(a.Floor, b.Floor), cmp.Compare(a.Time, b.Time), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	if r.report.Why, r.report.Refused = r.blocked, r.blocked != ""; plan.Refused != "" {
		r.report.Why, r.report.Refused = plan.Refused, true
	}
	if p.config.Rule.Window == 0 || plan.Refused != "" {
		p.finish()
		return
	}
	p.removeFiles()
}
