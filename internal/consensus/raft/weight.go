package raft

import "github.com/quorate/quorate/internal/consensus"

// LogBytes is how much memory the log takes, in bytes as Entry.SizeBytes counts them.
type LogBytes struct {
	Held     int // all entries in memory
	Ready    int // of these, committed and not applied
	Applying int // of these, handed out in Output.Apply and not applied
}

// weight keeps LogBytes up to date, and reports when a member has too much to apply.
//
// The limit counts committed entries only: this member can apply them whatever the others do. If it refused entries because
// of uncommitted ones it could wait for ever, for those may need the next entry to commit.
type weight struct {
	LogBytes
	limit  int    // of Ready
	full   bool   // Ready has reached limit, and has not fallen to half of it since
	workAt uint64 // tick at which something was applied last, or handed out after nothing was
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
func (l *replicaLog) weigh() {
	l.weight.LogBytes = LogBytes{
		Held:     sizeOf(l.entries),
		Ready:    sizeOf(l.slice(l.applied+1, l.commit)),
		Applying: sizeOf(l.slice(l.applied+1, l.handed)),
	}
	l.weight.revise()
}

// commitTo moves the commit index and returns the size of what it passed.
func (l *replicaLog) commitTo(index consensus.Index) int {
	size := sizeOf(l.slice(l.commit+1, index))
	l.commit = index
	l.weight.Ready += size
	l.weight.revise()
	return size
}

// applyTo notes that everything up to index is applied, of what was handed out.
func (l *replicaLog) applyTo(index consensus.Index, now uint64) {
	size := sizeOf(l.slice(l.applied+1, index))
	l.applied = index
	l.weight.Ready -= size
	l.weight.Applying -= size
	l.weight.workAt = now
	l.weight.revise()
}

// handOut returns what is to be applied next: committed and durable here, and no more than credit allows beside what is
// being applied; one entry may always be.
func (l *replicaLog) handOut(credit int, now uint64) []consensus.Entry {
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
	return l.slice(from, l.handed)
}

// fits returns those of a leader's entries that this member takes. One that has too much to apply takes nothing that makes
// its log longer, and says nothing of it, as if the message had been lost: the leader probes with each heartbeat.
func (r *Replica) fits(entries []consensus.Entry) []consensus.Entry {
	if !r.log.weight.full {
		return entries
	}
	same := 0
	for same < len(entries) && r.log.matches(entries[same].Mark()) {
		same++
	}
	if same == len(entries) || entries[same].Index <= r.log.last() {
		return entries // known, or in the place of others
	}
	r.counts.Withheld++
	return entries[:same:same]
}

// applyStalls reports whether this leader has as much to apply as it may keep, and gets no further with it: it could refuse
// proposals for ever.
func (r *Replica) applyStalls() bool {
	w := &r.log.weight
	return w.full && w.Applying > 0 && r.now-w.workAt >= stallElections*uint64(r.opts.ElectionTicks) && r.bestVoter() != nil
}

// stallElections is how many election timeouts a leader may take to apply one batch while it has too much to apply.
const stallElections = 3
