package check

import (
	"hash/fnv"

	"github.com/quorate/quorate/internal/consensus"
)

// logs checks Log Matching: an entry of one index and term has one content and one predecessor, everywhere and for ever; from
// that, by induction, whole prefixes are equal. It keeps a shadow of every member's log, which other checkers use.
type logs struct {
	seen    map[consensus.Position]content
	members map[consensus.MemberID]*shadow
	chosen  []consensus.Term // term of the committed entry at index i+1
	scratch []byte
}

type content struct {
	hash     uint64
	previous consensus.Term
}

// shadow is what a member's log must be: terms[i] is the term at index base+1+i.
type shadow struct {
	base    consensus.Position
	terms   []consensus.Term
	configs []change // configuration entries in the log, oldest first
	floor   change   // the configuration at base

	applied consensus.Index // by the state machine
	known   consensus.Index // an index that the member knows to be committed; it may know a later one
	knew    consensus.Index // known before the member's last step
	told    ruling          // the configuration that the member has in force
	was     ruling          // the one before its last step
	fresh   bool            // told must be judged
}

func (l *logs) init() {
	l.seen = map[consensus.Position]content{}
	l.members = map[consensus.MemberID]*shadow{}
}

func (l *logs) of(member consensus.MemberID) *shadow {
	w := l.members[member]
	if w == nil {
		w = &shadow{}
		l.members[member] = w
	}
	return w
}

func (w *shadow) last() consensus.Index { return w.base.Index + consensus.Index(len(w.terms)) }

func (w *shadow) term(index consensus.Index) (consensus.Term, bool) {
	switch {
	case index == w.base.Index:
		return w.base.Term, true
	case index < w.base.Index || index > w.last():
		return 0, false
	}
	return w.terms[index-w.base.Index-1], true
}

func (l *logs) hash(e *consensus.Entry) uint64 {
	l.scratch = consensus.AppendEntry(l.scratch[:0], e)
	h := fnv.New64a()
	h.Write(l.scratch)
	return h.Sum64()
}

// Appended records that a member appended entries to its log in memory; the write is under way.
func (s *Suite) Appended(member consensus.MemberID, entries []consensus.Entry) {
	w := s.logs.of(member)
	if len(entries) > 0 {
		p := s.durable.of(member)
		p.pending = append(p.pending, *requestOf(entries))
	}
	for i := range entries {
		s.logs.append(s, member, w, &entries[i])
	}
}

func (l *logs) append(s *Suite, member consensus.MemberID, w *shadow, e *consensus.Entry) {
	if e.Index <= w.base.Index || e.Index > w.last()+1 {
		s.report("log-matching", "member %v appends %v to a log of %v..%d", member, e.Position(), w.base, w.last())
		return
	}
	if e.Index <= w.last() {
		w.truncate(e.Index)
		s.durable.truncated(s, member, e.Index)
	}
	previous, _ := w.term(e.Index - 1)
	now := content{l.hash(e), previous}
	if then, ok := l.seen[e.Position()]; ok && then != now {
		s.report("log-matching", "member %v has another entry %v than was seen before (predecessor %d, then %d)",
			member, e.Position(), now.previous, then.previous)
	}
	l.seen[e.Position()] = now
	if previous > e.Term {
		s.report("log-matching", "member %v: term falls from %d to %d at index %d", member, previous, e.Term, e.Index)
	}
	w.terms = append(w.terms, e.Term)
	s.primary.appended(s, member, e)
	switch e.Kind {
	case consensus.EntryConfig:
		s.changeLogged(e)
		s.configAppended(member, w, e)
	case consensus.EntryNoop:
		w.noticed(e)
	}
}

// forget drops the entries of terms that a crashed member entered only in memory. No message of such a term can have left it,
// so no other member has them, and it may enter the term again and fill it with other entries.
func (l *logs) forget(w *shadow, durable consensus.Term) {
	for at := len(w.terms) - 1; at >= 0 && w.terms[at] > durable; at-- {
		delete(l.seen, consensus.Position{Index: w.base.Index + consensus.Index(at) + 1, Term: w.terms[at]})
	}
}

// reached notes how far the member's state machine has applied.
func (w *shadow) reached(index consensus.Index) {
	w.applied, w.known = max(w.applied, index), max(w.known, index)
}

func (w *shadow) truncate(from consensus.Index) {
	w.terms = w.terms[:from-w.base.Index-1]
	for len(w.configs) > 0 && w.configs[len(w.configs)-1].id.Index >= from {
		w.configs = w.configs[:len(w.configs)-1]
	}
	if c := w.lastChange(); c.settledBy >= from {
		c.settledBy = 0
	}
}

// Rebased records that a member's log now begins after meta: a snapshot was installed, or the log was compacted.
func (s *Suite) Rebased(member consensus.MemberID, meta consensus.SnapshotMeta, reset bool) {
	w := s.logs.of(member)
	if !reset && meta.Position.Index <= w.base.Index {
		return // this compaction was requested before a snapshot that was installed meanwhile
	}
	if term := s.logs.chosenAt(meta.Position.Index); term != 0 && term != meta.Position.Term {
		s.report("log-matching", "member %v compacts at %v, but the committed entry there has term %d",
			member, meta.Position, term)
	}
	s.judgeMeta(member, &meta)
	floor := floorOf(&meta)
	if c, _ := w.find(meta.ConfigID); c != nil && !reset {
		floor.settledBy = c.settledBy // the no-op may still be in the log
	}
	if reset {
		p := s.durable.of(member)
		p.pending = append(p.pending, request{reset: &meta.Position})
		p.cut = p.term
		w.base, w.terms, w.configs = meta.Position, nil, nil
		w.applied, w.known = max(w.applied, meta.Position.Index), max(w.known, meta.Position.Index)
	} else if meta.Position.Index > w.base.Index && meta.Position.Index <= w.last() {
		w.terms = append([]consensus.Term(nil), w.terms[meta.Position.Index-w.base.Index:]...)
		w.base = meta.Position
	}
	for len(w.configs) > 0 && w.configs[0].id.Index <= meta.Position.Index {
		w.configs = w.configs[1:]
	}
	w.floor = floor
}

func (l *logs) chosenAt(index consensus.Index) consensus.Term {
	if index == 0 || index > consensus.Index(len(l.chosen)) {
		return 0
	}
	return l.chosen[index-1]
}

// committed is called with every entry that a member applied, which is therefore committed for ever.
func (l *logs) committed(s *Suite, member consensus.MemberID, e *consensus.Entry) {
	if term := l.chosenAt(e.Index); term != 0 {
		if term != e.Term {
			s.report("state-machine", "member %v applied %v where term %d was committed", member, e.Position(), term)
		}
		return
	}
	if e.Index != consensus.Index(len(l.chosen))+1 {
		s.report("state-machine", "member %v applied index %d before anybody applied %d",
			member, e.Index, len(l.chosen)+1)
		return
	}
	l.inOrder(s, e)
	l.chosen = append(l.chosen, e.Term)
}
