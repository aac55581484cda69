package ship

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// pending are entries that are not sealed yet.
type pending struct {
	segment backup.Segment
	bytes   int
	since   int64 // when the first of them came
	news    int64 // when the first came that is not the backup's own; zero: none did
}

// loss is that entries are left out.
type loss struct {
	after consensus.Index // the last entry that was shipped, or will be
	why   string
}

// object is to be put, or is being put.
type object struct {
	name     string
	content  []byte
	end      backup.Head  // of a segment
	gap      bool         // a note of a gap
	file     *backup.File // of a base
	under    bool         // an operation is under way
	done     bool
	failures int
	next     int64 // not before
}

func (s *Shipper) held() int64 { return int64(s.pending.bytes) + s.queued }

// take takes the entries of a batch, or gives up.
func (s *Shipper) take(b *Batch) {
	items := b.Items
	if first := items[0].Entry.Index; first != s.applied+1 {
		s.leaveOut(fmt.Sprintf("entries %d to %d are not kept any more: the place took too little for too long, or a snapshot "+
			"replaced the store", s.applied+1, first-1))
	}
	if s.lost != nil {
		return
	}
	before, revision := b.Before, b.RevisionBefore
	for i := range items {
		size := items[i].Entry.SizeBytes()
		switch {
		case size > backup.MaxEntryBytes || int64(size) > s.config.HeldBytes:
			s.leaveOut(fmt.Sprintf("entry %d has %d bytes: too many to wait for the place", items[i].Entry.Index, size))
			return
		case s.held()+int64(size) > s.config.HeldBytes:
			s.leaveOut(fmt.Sprintf("the place did not take the entries before: %d bytes wait, of %d at most", s.held(),
				s.config.HeldBytes))
			return
		}
		p := &s.pending
		if len(p.segment.Items) == 0 {
			p.segment = backup.Segment{Cluster: s.config.Cluster, Epoch: s.config.Epoch, Member: s.config.Member,
				Since: b.Since, Before: before, RevisionBefore: revision, Predecessor: s.predecessor, Follows: s.follows}
			p.since, s.follows = s.now, 0
		}
		item := items[i]
		item.Time = s.last.Time
		p.segment.Items = append(p.segment.Items, item)
		p.bytes += size
		if p.news == 0 && item.Entry.Index <= b.news() {
			p.news = s.now
		}
		before, revision, s.last.Revision = item.Sum, item.Revision, item.Revision
		if p.bytes >= s.config.SealBytes || len(p.segment.Items) == backup.MaxItems {
			s.seal()
		}
	}
}

func (s *Shipper) sealIfDue() {
	p := &s.pending
	if len(p.segment.Items) == 0 {
		return
	}
	// The backup's own entries, such as its reports, ask for no segment each: an idle cluster would ship for ever.
	if p.news > 0 && s.now-p.news >= s.config.SealAfter || s.now-p.since >= s.config.RestAfter || s.base.awaits(p) {
		s.seal()
	}
}

// seal makes a segment of what is pending.
func (s *Shipper) seal() {
	name, content := s.packer.Pack(&s.pending.segment)
	s.predecessor = name.Hash
	s.end = name.Head()
	s.pending = pending{}
	s.enqueue(&object{name: name.String(), content: content, end: s.end})
}

func (s *Shipper) enqueue(o *object) {
	s.queue = append(s.queue, o)
	s.queued += int64(len(o.content))
}

// leaveOut leaves out entries from now on.
func (s *Shipper) leaveOut(why string) {
	if s.lost != nil {
		return
	}
	if len(s.pending.segment.Items) > 0 {
		s.seal()
	}
	s.lost = &loss{after: max(s.end.Index, s.base.head.Index, s.floor), why: why}
	if s.base.whole != nil { // it may be there already
		s.lost.after = max(s.lost.after, s.base.manifest.Index)
	}
	s.gaps++
}

// recover ends a gap once the place has all that came before it: it notes the gap, takes entries again and begins a base.
func (s *Shipper) recover() {
	if s.lost == nil || len(s.queue) > 0 {
		return
	}
	if s.lost.after > 0 {
		g := backup.Gap{Cluster: backup.Hex(s.config.Cluster), Member: backup.Hex(s.config.Member), After: s.lost.after,
			Until: max(s.applied, s.lost.after) + 1, Time: s.now, Reason: s.lost.why}
		s.gap = g
		name, content := g.Seal(s.config.Lock)
		s.enqueue(&object{name: name.String(), content: content, gap: true})
	}
	s.floor = s.lost.after
	s.lost, s.predecessor, s.follows, s.first = nil, backup.Hash{}, 0, s.applied+1
	s.abandonBase()
	s.base.due = true
}

// noting reports whether the place lacks the note of a gap. Nothing that comes after it is put before: a member that takes
// over would continue it, and the gap would have no note.
func (s *Shipper) noting() bool { return len(s.queue) > 0 && s.queue[0].gap }

// putQueue puts the first objects that wait, so many at once at most.
func (s *Shipper) putQueue(most int) {
	for i, o := range s.queue {
		if i == s.config.Puts || i == 1 && s.noting() || s.roads.under[toLog] >= most || !s.roads.free(toLog) {
			break
		}
		if o.under || o.done || s.now < o.next {
			continue
		}
		s.put(Op{Kind: Put, Name: o.name, Content: o.content}, toLog, o, func(Result) { s.popDone() })
	}
}

// put puts an object, and calls then with the result. If it fails the caller puts it again, from its next on.
func (s *Shipper) put(op Op, by road, o *object, then func(Result)) {
	o.under = true
	s.begin(op, by, func(outcome *Outcome) {
		o.under = false
		if o.done = outcome.Result == OK; !o.done {
			o.next = s.retry(o.failures)
			o.failures++
		}
		if outcome.Result == Taken && op.Kind == Put {
			s.rename(o)
		}
		then(outcome.Result)
	})
}

// rename gives an object whose name has other bytes, which are damage, another content that says the same, and so another name.
// Nothing is removed: another member may have put the object anew meanwhile. A file of a base has one content only; an operator
// removes what is damaged.
func (s *Shipper) rename(o *object) {
	before := len(o.content)
	if name, err := backup.ParseSegment(o.name); err == nil && name.Set == 0 {
		if segment, err := backup.Unpack(&name, o.content); err == nil {
			segment.Predecessor = name.Hash
			name, o.content = s.packer.Pack(segment)
			o.name = name.String()
		}
	} else {
		hash := backup.HashOf(o.content).String()
		if s.config.Lock == nil || o == s.base.whole {
			o.content = append(o.content[:before:before], '\n') // white space after a JSON object
		} else {
			o.content = backup.Another(o.content)
		}
		o.name = strings.Replace(o.name, hash, backup.HashOf(o.content).String(), 1)
	}
	if o != s.base.whole {
		s.queued += int64(len(o.content) - before)
	}
}

// popDone removes the objects at the front of the queue that are in the place.
func (s *Shipper) popDone() {
	for len(s.queue) > 0 && s.queue[0].done {
		o := s.queue[0]
		if o.end.Index > 0 {
			s.sealed = o.end
			s.base.count(o.end.Index)
		}
		s.queued -= int64(len(o.content))
		s.queue = s.queue[1:]
	}
}
