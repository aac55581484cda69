package ship

import (
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// baseWork is the base that is being made, and what is known of those before it.
type baseWork struct {
	head  backup.Head // the newest one that is in the place
	hash  backup.Hash // of its manifest
	at    int64       // the time when that was known: the next one is due BaseEvery later
	due   bool        // one is to be made whatever the time
	after int         // segments that were put after it
	known map[backup.Hash]bool
	lacks bool // the newest one lacks files: another one is made, of files that are all put

	run      int              // counts attempts: outcomes of an earlier one do not matter
	asked    bool             // a checkpoint is being made, or is there
	behind   int              // segments that were put since then, and are not known to be in it
	manifest *backup.Manifest // of the checkpoint
	timed    bool             // the manifest has its time
	moments  moments          // of entries since it was asked for
	files    []*object        // not in the place yet
	whole    *object          // the manifest, once all files are there
	failures int
	next     int64
}

func (s *Shipper) turnBase() {
	b := &s.base
	if !b.asked {
		if s.baseDue() && s.now >= b.next && !s.retention.pruner.Looking() {
			s.beginBase()
		}
		return
	}
	if b.manifest == nil {
		return
	}
	// The time of a base is that of its entry, and bounds those of the entries before it: it is known once they all came by.
	if !b.timed && s.applied >= b.manifest.Index {
		if b.manifest.Time, b.timed = b.moments.of(b.manifest.Index); b.timed {
			b.moments = moments{}
		}
	}
	s.putFiles()
	// A base comes after the segments up to it: a member that takes over, and continues it, would leave out those that are
	// not there.
	if len(b.files) == 0 && b.timed && b.manifest.Index <= max(s.sealed.Index, s.first-1) {
		s.putManifest()
	}
}

// awaits reports whether a base cannot come before entries that wait to be sealed.
func (b *baseWork) awaits(p *pending) bool {
	return b.manifest != nil && p.segment.Items[0].Entry.Index <= b.manifest.Index
}

// baseDue reports whether a base is to be made, now or after a pause.
func (s *Shipper) baseDue() bool {
	b := &s.base
	return s.lost == nil && !s.noting() &&
		(b.due || b.at == 0 || s.now-b.at >= s.config.BaseEvery || b.after >= s.config.BaseAfter)
}

// beginBase asks for a checkpoint, unless the base that is there is of the present state, but for the backup's own row.
func (s *Shipper) beginBase() {
	b := &s.base
	b.due = false
	if b.head.Index > 0 && b.head.Index >= s.news && b.head.Index+1 >= s.first && !b.lacks {
		b.at, b.after = s.now, 0
		return
	}
	b.asked, b.behind, b.moments = true, 0, moments{every: 1000}
	b.moments.add(s.applied, s.last.Time)
	run := b.run
	s.begin(Op{Kind: Checkpoint}, byDisk, func(o *Outcome) {
		switch {
		case b.run != run:
		case o.Result != OK:
			s.failBase()
		default:
			s.checkpointMade(o.Made)
		}
	})
}

func (s *Shipper) checkpointMade(made *backup.Manifest) {
	b := &s.base
	b.manifest = made
	made.Cluster, made.Epoch, made.Member = backup.Hex(s.config.Cluster), s.config.Epoch, backup.Hex(s.config.Member)
	made.Build = s.config.Build
	listed := map[backup.Hash]bool{}
	for i := range made.Files {
		if f := &made.Files[i]; !b.known[f.Hash] && !listed[f.Hash] {
			listed[f.Hash] = true
			b.files = append(b.files, &object{name: backup.FileName(s.config.Cluster, f.Hash), file: f})
		}
	}
}

// putFiles puts the first files that wait.
func (s *Shipper) putFiles() {
	run := s.base.run
	for i, o := range s.base.files {
		if i == s.config.FilePuts || !s.roads.free(toOthers) {
			return
		}
		if o.under || o.done || s.now < o.next {
			continue
		}
		s.put(Op{Kind: PutFile, Name: o.name, File: *o.file}, toOthers, o, func(result Result) {
			if result == OK {
				s.base.known[o.file.Hash] = true
			}
			switch {
			case s.base.run != run:
			case result == Changed:
				s.failBase()
			default:
				s.popFiles()
			}
		})
	}
}

func (s *Shipper) popFiles() {
	b := &s.base
	kept := b.files[:0]
	for _, o := range b.files {
		if !o.done {
			kept = append(kept, o)
		}
	}
	clear(b.files[len(kept):])
	b.files = kept
}

// needs are the objects of a base's files.
func (s *Shipper) needs(m *backup.Manifest) (needed []Needed) {
	for i := range m.Files {
		needed = append(needed, Needed{backup.FileName(s.config.Cluster, m.Files[i].Hash), m.Files[i].Size})
	}
	return needed
}

func (s *Shipper) putManifest() {
	b := &s.base
	if b.whole == nil {
		name, content := b.manifest.Seal(s.config.Lock)
		b.whole = &object{name: name.String(), content: content, end: name.Head()}
	}
	if b.whole.under || s.now < b.whole.next || !s.roads.free(toOthers) {
		return
	}
	run := b.run
	op := Op{Kind: Put, Name: b.whole.name, Content: b.whole.content, Needs: s.needs(b.manifest)}
	s.put(op, toOthers, b.whole, func(result Result) {
		switch {
		case s.base.run != run:
		case result == OK:
			s.baseDone()
		case result == Missing: // what is known of the place is not so any more
			s.base.known = map[backup.Hash]bool{}
			s.failBase()
		}
	})
}

func (s *Shipper) baseDone() {
	m, head, hash, behind := s.base.manifest, s.base.whole.end, backup.HashOf(s.base.whole.content), s.base.behind
	s.abandonBase()
	b := &s.base
	b.head, b.hash, b.at, b.lacks, b.after = head, hash, s.now, false, behind
	b.known = map[backup.Hash]bool{}
	for i := range m.Files {
		b.known[m.Files[i].Hash] = true
	}
	s.retention.next = max(s.now, s.retention.began+pruneEvery)
}

// failBase tries again later.
func (s *Shipper) failBase() {
	failures := s.base.failures
	s.abandonBase()
	s.base.due, s.base.failures, s.base.next = true, failures+1, s.retry(failures)
}

// abandonBase ends the work on a base, whether or not it is done.
func (s *Shipper) abandonBase() {
	b := &s.base
	if b.asked {
		s.ops = append(s.ops, Op{Kind: Discard})
	}
	s.base = baseWork{head: b.head, hash: b.hash, at: b.at, after: b.after, known: b.known, lacks: b.lacks, run: b.run + 1}
}

// count counts a segment that was put.
func (b *baseWork) count(end consensus.Index) {
	b.after++
	if b.asked && (b.manifest == nil || end > b.manifest.Index) {
		b.behind++
	}
}

// came notes the time of the last entry for a base that is being made.
func (s *Shipper) came() {
	if b := &s.base; b.asked && !b.timed {
		b.moments.add(s.applied, s.last.Time)
	}
}
