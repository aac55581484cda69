package raftlog

import (
	"fmt"
	"slices"
	"sort"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Log is the log in memory: every entry after base, whether on disk yet or not.
//
//	base      applied   handed     commit         durable    last
//	  |----------|---------|----------|--------------|---------|
//	  compacted            being applied             persist requests under way
//
// Invariants: base <= applied <= handed <= min(commit, durable), commit <= last, durable <= last, unsent <= last+1.
// On a leader durable may be behind commit: the others suffice.
//
// Outputs share the entries' memory, so no entry is ever overwritten in place: truncation cuts the capacity too.
type Log struct {
	base    consensus.Position
	entries []consensus.Entry

	commit  consensus.Index
	applied consensus.Index
	handed  consensus.Index // handed out by HandOut
	durable consensus.Index // this log, up to here, is on disk
	unsent  consensus.Index // first entry that no persist request has carried yet

	writes []write // outstanding persist requests, oldest first
	weight weight

	Dropped rules.Set // by a test
}

// write is a persist request under way. Once it is done, the log up to last is durable, unless it was truncated
// meanwhile: then last was lowered to what the truncation left.
type write struct {
	seq  uint64
	last consensus.Index
	at   uint64 // tick at which it was asked for
}

// Restore returns the log found on disk, all of it durable, or says why it cannot be one. If the store is ahead of the log,
// entries at or below base are dropped, and all of them if the log does not contain base. The limit is that of Bytes.Ready.
func Restore(base consensus.Position, entries []consensus.Entry, applied, commit consensus.Index, limit int) (Log, error) {
	for i := 1; i < len(entries); i++ {
		if entries[i].Index != entries[i-1].Index+1 || entries[i].Term < entries[i-1].Term {
			return Log{}, fmt.Errorf("entry %v follows %v", entries[i].Position(), entries[i-1].Position())
		}
	}
	if len(entries) > 0 && entries[0].Index > base.Index+1 {
		return Log{}, fmt.Errorf("log begins at %d, base is %v", entries[0].Index, base)
	}
	if len(entries) > 0 && entries[0].Index <= base.Index {
		// The store was swapped for a snapshot and the log was not reset yet, or the log was not compacted yet.
		at := int(base.Index - entries[0].Index)
		if at < len(entries) && entries[at].Term == base.Term {
			entries = entries[at+1:]
		} else {
			entries = nil
		}
	}
	if last := base.Index + consensus.Index(len(entries)); applied > last {
		return Log{}, fmt.Errorf("applied %d, last entry %d", applied, last)
	}
	l := Log{base: base, entries: slices.Clone(entries), weight: weight{limit: limit}}
	last := l.Last()
	l.applied = max(base.Index, applied)
	l.handed = l.applied
	l.commit = max(l.applied, min(commit, last))
	l.durable, l.unsent = last, last+1
	l.weigh()
	return l, nil
}

// Base returns the position after which the log begins.
func (l *Log) Base() consensus.Position { return l.base }

// Commit returns up to where the log is committed.
func (l *Log) Commit() consensus.Index { return l.commit }

// Applied returns up to where the log is applied.
func (l *Log) Applied() consensus.Index { return l.applied }

// Handed returns up to where the log was handed out to be applied.
func (l *Log) Handed() consensus.Index { return l.handed }

// Durable returns up to where the log is on disk.
func (l *Log) Durable() consensus.Index { return l.durable }

// Ordered reports whether the invariants hold.
func (l *Log) Ordered() bool {
	return l.base.Index <= l.applied && l.applied <= l.handed && l.handed <= l.commit && l.commit <= l.Last() &&
		l.durable <= l.Last() && l.handed <= l.durable
}

// Last returns the index of the last entry, or of the base if there is none.
func (l *Log) Last() consensus.Index {
	return l.base.Index + consensus.Index(len(l.entries))
}

// LastPosition returns the position of the last entry, or the base if there is none.
func (l *Log) LastPosition() consensus.Position {
	if len(l.entries) == 0 {
		return l.base
	}
	return l.entries[len(l.entries)-1].Position()
}

// Term returns the term of the entry at index, and false if the log does not have it.
func (l *Log) Term(index consensus.Index) (consensus.Term, bool) {
	switch {
	case index == l.base.Index:
		return l.base.Term, true
	case index < l.base.Index || index > l.Last():
		return 0, false
	}
	return l.entries[index-l.base.Index-1].Term, true
}

// PositionAt returns the position of the entry at index, or none if the log does not have it (any more).
func (l *Log) PositionAt(index consensus.Index) consensus.Position {
	term, ok := l.Term(index)
	if !ok {
		return consensus.Position{}
	}
	return consensus.Position{Index: index, Term: term}
}

// Matches reports whether the log has an entry at m, or begins after it.
func (l *Log) Matches(m consensus.Position) bool {
	term, ok := l.Term(m.Index)
	return ok && term == m.Term
}

// Slice returns the entries from..to, both included, sharing memory.
func (l *Log) Slice(from, to consensus.Index) []consensus.Entry {
	if from > to {
		return nil
	}
	lo, hi := from-l.base.Index-1, to-l.base.Index
	return l.entries[lo:hi:hi]
}

// SliceBytes returns entries from from on, at least one if there are any, up to about maxBytes, and their size.
func (l *Log) SliceBytes(from consensus.Index, maxBytes int) ([]consensus.Entry, int) {
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

// LastNotAfter returns the last position at or before index whose term is at most term: with terms that never fall
// along a log, everything between it and index conflicts with a log that has term at index (Raft paper, section 5.3,
// the end: a whole term, or more, is skipped per refusal).
func (l *Log) LastNotAfter(index consensus.Index, term consensus.Term) consensus.Position {
	index = min(index, l.Last())
	if index <= l.base.Index {
		return l.base
	}
	n := int(index - l.base.Index)
	// The first entry among n with a higher term.
	at := sort.Search(n, func(i int) bool { return l.entries[i].Term > term })
	if at == 0 {
		return l.base
	}
	return l.entries[at-1].Position()
}

// Append adds entries, which must follow the last.
func (l *Log) Append(entries ...consensus.Entry) {
	l.entries = append(l.entries, entries...)
	size := sizeOf(entries)
	l.weight.Held += size
	l.weight.uncommitted += size
}

// Truncate removes the entries from from on.
func (l *Log) Truncate(from consensus.Index) {
	if from <= l.commit {
		invariant.Broken("committed entries stay: truncate from %d, commit %d", from, l.commit)
	}
	keep := from - l.base.Index - 1
	size := sizeOf(l.entries[keep:])
	l.weight.Held -= size
	l.weight.uncommitted -= size
	l.entries = l.entries[:keep:keep]
	l.durable = min(l.durable, from-1)
	l.unsent = min(l.unsent, from)
	for i := range l.writes {
		if !l.Dropped[rules.TruncateKeepsWrites] {
			l.writes[i].last = min(l.writes[i].last, from-1)
		}
	}
}

// Reset starts the log anew after position, which an installed snapshot covers.
func (l *Log) Reset(position consensus.Position) {
	l.base = position
	l.entries = nil
	l.commit, l.applied, l.handed, l.durable = position.Index, position.Index, position.Index, position.Index
	l.unsent = position.Index + 1
	for i := range l.writes {
		l.writes[i].last = 0
	}
	l.weigh()
}

// Installed notes that a snapshot put the state machine at index, which the log has and which is committed.
func (l *Log) Installed(index consensus.Index) {
	l.handed, l.applied, l.durable = max(l.handed, index), max(l.applied, index), max(l.durable, index)
	l.weigh()
}

// Compact forgets entries up to index. It copies the rest, with room to grow, so that the memory is really freed.
func (l *Log) Compact(index consensus.Index) {
	term, ok := l.Term(index)
	if !ok || index <= l.base.Index {
		return
	}
	rest := l.entries[index-l.base.Index:]
	l.weight.Held -= sizeOf(l.entries[:index-l.base.Index])
	l.entries = append(make([]consensus.Entry, 0, len(rest)+len(rest)/2+256), rest...)
	l.base = consensus.Position{Index: index, Term: term}
}

// Unsent reports whether there are entries that no persist request carries.
func (l *Log) Unsent() bool { return l.Last() >= l.unsent }

// Write notes the persist request seq, made now, and returns the entries that it carries: all that no request did before.
func (l *Log) Write(seq, now uint64) []consensus.Entry {
	w := write{seq: seq, at: now}
	var entries []consensus.Entry
	if last := l.Last(); last >= l.unsent {
		entries = l.Slice(l.unsent, last)
		l.unsent, w.last = last+1, last
	}
	l.writes = append(l.writes, w)
	return entries
}

// Writing reports whether persist requests are under way.
func (l *Log) Writing() bool { return len(l.writes) > 0 }

// WritingSince returns the tick at which the oldest persist request under way was made; false if there is none.
func (l *Log) WritingSince() (uint64, bool) {
	if len(l.writes) == 0 {
		return 0, false
	}
	return l.writes[0].at, true
}

// Persisted notes that the request seq and all before it are on disk.
func (l *Log) Persisted(seq uint64) {
	done := 0
	for done < len(l.writes) && l.writes[done].seq <= seq {
		l.durable = max(l.durable, l.writes[done].last)
		done++
	}
	l.writes = slices.Delete(l.writes, 0, done)
}

// SizeAfter returns the size of the entries after index.
func (l *Log) SizeAfter(index consensus.Index) int {
	return sizeOf(l.entries[max(0, int(index)-int(l.base.Index)):])
}

// HoldsAfter reports whether a member that has everything up to index can be fed from the log.
func (l *Log) HoldsAfter(index consensus.Index) bool {
	return index >= l.base.Index && index <= l.Last()
}
