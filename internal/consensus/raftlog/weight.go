package raftlog

import "github.com/quorate/quorate/internal/consensus"

// Bytes is how much memory the log takes, in bytes as Entry.SizeBytes counts them.
type Bytes struct {
	Held     int // all entries in memory
	Ready    int // of these, committed and not applied
	Applying int // of these, handed out by HandOut and not applied
}

// weight keeps Bytes up to date, and reports when a member has too much to apply.
//
// The limit counts committed entries only: this member can apply them whatever the others do. If it refused entries because
// of uncommitted ones it could wait for ever, for those may need the next entry to commit.
type weight struct {
	Bytes
	limit       int // of Ready
	uncommitted int
	full        bool   // Ready has reached limit, and has not fallen to half of it since
	workAt      uint64 // tick at which something was applied last, or handed out after nothing was
}

// revise notes that Ready changed.
func (w *weight) revise() {
	switch {
	case w.Ready >= w.limit:
		w.full = true
	case w.Ready <= w.limit/2:
		w.full = false
	}
}

// sizeOf returns the size of entries in bytes.
func sizeOf(entries []consensus.Entry) int {
	size := 0
	for i := range entries {
		size += entries[i].SizeBytes()
	}
	return size
}

// weigh counts everything anew.
func (l *Log) weigh() {
	l.weight.Bytes = Bytes{
		Held:     sizeOf(l.entries),
		Ready:    sizeOf(l.Slice(l.applied+1, l.commit)),
		Applying: sizeOf(l.Slice(l.applied+1, l.handed)),
	}
	l.weight.uncommitted = l.SizeAfter(l.commit)
	l.weight.revise()
}

// CommitTo moves the commit index.
func (l *Log) CommitTo(index consensus.Index) {
	size := sizeOf(l.Slice(l.commit+1, index))
	l.commit = index
	l.weight.Ready += size
	l.weight.uncommitted -= size
	l.weight.revise()
}

// ApplyTo notes that everything up to index is applied, of what was handed out.
func (l *Log) ApplyTo(index consensus.Index, now uint64) {
	size := sizeOf(l.Slice(l.applied+1, index))
	l.applied = index
	l.weight.Ready -= size
	l.weight.Applying -= size
	l.weight.workAt = now
	l.weight.revise()
}

// HandOut returns what is to be applied next: committed and durable here, and no more than credit allows beside what is
// being applied; one entry may always be.
func (l *Log) HandOut(credit int, now uint64) []consensus.Entry {
	upto := min(l.commit, l.durable)
	if upto <= l.handed {
		return nil
	}
	if l.weight.Applying == 0 {
		l.weight.workAt = now
	}
	from := l.handed + 1
	for l.handed < upto {
		size := l.entries[l.handed-l.base.Index].SizeBytes()
		if l.weight.Applying > 0 && l.weight.Applying+size > credit {
			break
		}
		l.weight.Applying += size
		l.handed++
	}
	return l.Slice(from, l.handed)
}

// Bytes returns how much memory the log takes.
func (l *Log) Bytes() Bytes { return l.weight.Bytes }

// Uncommitted returns the size in bytes of the entries that have not committed.
func (l *Log) Uncommitted() int { return l.weight.uncommitted }

// Full reports whether too much waits to be applied: from when the limit is reached until half of it is left.
func (l *Log) Full() bool { return l.weight.full }

// ApplyingSince returns the tick at which something was applied last, or handed out after nothing was; false if nothing is
// being applied.
func (l *Log) ApplyingSince() (uint64, bool) { return l.weight.workAt, l.weight.Applying > 0 }

// RestartApplyWatch lets ApplyingSince count from now on.
func (l *Log) RestartApplyWatch(now uint64) { l.weight.workAt = now }
