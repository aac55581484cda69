package raft

import (
	"slices"
	"sort"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/invariant"
)

// replicaLog is the log in memory: every entry after base, whether on disk yet or not.
//
//	base      applied   handed     commit         durable    last
//	  |----------|---------|----------|--------------|---------|
//	  compacted            Apply out                 persist requests under way
//
// Invariants: base <= applied <= handed <= min(commit, durable), commit <= last, durable <= last, unsent <= last+1.
// On a leader durable may be behind commit: the others suffice.
//
// Outputs share the entries' memory, so no entry is ever overwritten in place: truncation cuts the capacity too.
type replicaLog struct {
	base    consensus.Mark
	entries []consensus.Entry

	commit  consensus.Index
	applied consensus.Index
	handed  consensus.Index // handed out in Output.Apply
	durable consensus.Index // this log, up to here, is on disk
	unsent  consensus.Index // first entry that no persist request has carried yet

	writes []write // outstanding persist requests, oldest first
	weight weight
}

// write is a persist request under way. Once it is done, the log up to last is durable, unless it was truncated
// meanwhile: then last was lowered to what the truncation left.
type write struct {
	seq  uint64
	last consensus.Index
	at   uint64 // tick at which it was asked for
}

func (l *replicaLog) last() consensus.Index {
	return l.base.Index + consensus.Index(len(l.entries))
}

func (l *replicaLog) lastMark() consensus.Mark {
	if len(l.entries) == 0 {
		return l.base
	}
	return l.entries[len(l.entries)-1].Mark()
}

// term returns the term of the entry at index, and false if the log does not hold it.
func (l *replicaLog) term(index consensus.Index) (consensus.Term, bool) {
	switch {
	case index == l.base.Index:
		return l.base.Term, true
	case index < l.base.Index || index > l.last():
		return 0, false
	}
	return l.entries[index-l.base.Index-1].Term, true
}

// markAt returns the position of the entry at index, or none if the log does not hold it (any more).
func (l *replicaLog) markAt(index consensus.Index) consensus.Mark {
	term, ok := l.term(index)
	if !ok {
		return consensus.Mark{}
	}
	return consensus.Mark{Index: index, Term: term}
}

func (l *replicaLog) matches(m consensus.Mark) bool {
	term, ok := l.term(m.Index)
	return ok && term == m.Term
}

// slice returns the entries from..to, both included, sharing memory.
func (l *replicaLog) slice(from, to consensus.Index) []consensus.Entry {
	if from > to {
		return nil
	}
	lo, hi := from-l.base.Index-1, to-l.base.Index
	return l.entries[lo:hi:hi]
}

// sliceBytes returns entries from from on, at least one if there are any, up to about maxBytes, and their size.
func (l *replicaLog) sliceBytes(from consensus.Index, maxBytes int) ([]consensus.Entry, int) {
	lo := int(from - l.base.Index - 1)
	hi, size := lo, 0
	for hi < len(l.entries) {
		next := l.entries[hi].SizeBytes()
		if hi > lo && size+next > maxBytes {
			break
		}
		size += next
		hi++
	}
	return l.entries[lo:hi:hi], size
}

// lastNotAfter returns the last position at or before index whose term is at most term: with terms that never fall
// along a log, everything between it and index conflicts with a log that has term at index (Raft paper, section 5.3,
// the end: a whole term, or more, is skipped per refusal).
func (l *replicaLog) lastNotAfter(index consensus.Index, term consensus.Term) consensus.Mark {
	index = min(index, l.last())
	if index <= l.base.Index {
		return l.base
	}
	n := int(index - l.base.Index)
	// The first entry among n with a higher term.
	at := sort.Search(n, func(i int) bool { return l.entries[i].Term > term })
	if at == 0 {
		return l.base
	}
	return l.entries[at-1].Mark()
}

func (l *replicaLog) append(entries ...consensus.Entry) {
	l.entries = append(l.entries, entries...)
	l.weight.Held += sizeOf(entries)
}

// truncate removes the entries from from on.
func (l *replicaLog) truncate(from consensus.Index) {
	if from <= l.commit {
		invariant.True(false, "committed entries stay: truncate from %d, commit %d", from, l.commit)
	}
	keep := from - l.base.Index - 1
	l.weight.Held -= sizeOf(l.entries[keep:])
	l.entries = l.entries[:keep:keep]
	l.durable = min(l.durable, from-1)
	l.unsent = min(l.unsent, from)
	for i := range l.writes {
		l.writes[i].last = min(l.writes[i].last, from-1)
	}
}

// reset starts the log anew after mark, which an installed snapshot covers.
func (l *replicaLog) reset(mark consensus.Mark) {
	l.base = mark
	l.entries = nil
	l.commit, l.applied, l.handed, l.durable = mark.Index, mark.Index, mark.Index, mark.Index
	l.unsent = mark.Index + 1
	for i := range l.writes {
		l.writes[i].last = 0
	}
	l.weigh()
}

// compact forgets entries up to index. It copies the rest, with room to grow, so that the memory is really freed.
func (l *replicaLog) compact(index consensus.Index) {
	term, ok := l.term(index)
	if !ok || index <= l.base.Index {
		return
	}
	rest := l.entries[index-l.base.Index:]
	l.weight.Held -= sizeOf(l.entries[:index-l.base.Index])
	l.entries = append(make([]consensus.Entry, 0, len(rest)+len(rest)/2+256), rest...)
	l.base = consensus.Mark{Index: index, Term: term}
}

// persisted notes that the request seq and all before it are on disk.
func (l *replicaLog) persisted(seq uint64) {
	done := 0
	for done < len(l.writes) && l.writes[done].seq <= seq {
		l.durable = max(l.durable, l.writes[done].last)
		done++
	}
	l.writes = slices.Delete(l.writes, 0, done)
}

// sizeAfter returns the size of the entries after index.
func (l *replicaLog) sizeAfter(index consensus.Index) int {
	return sizeOf(l.entries[max(0, int(index)-int(l.base.Index)):])
}
