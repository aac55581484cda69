package node

import (
	"math"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// maxWaits is how many batches of entries waits keeps. Later ones share one more, of which no time is known.
const maxWaits = 4096

// waits are the batches of entries that this member has logged as the leader and that have not committed: how long a commit
// took is for spans and the log of slow requests. It says nothing of a commit whose last batch was not kept.
type waits struct {
	batches []batch
	commit  raft.Commit     // of this step
	told    raft.Commit     // the last one, of which a leader's messages tell
	ready   consensus.Index // as of the step before
}

// batch is the entries that one step logged, up to the last; or those of several steps, if its time is zero.
type batch struct {
	last  consensus.Index
	first consensus.Index // the last entry of the first step
	at    time.Time
}

// covers reports whether a commit up to an index ends with a step of the batch.
func (b *batch) covers(upto consensus.Index) bool { return b.first <= upto }

// logged notes what is in the log of the leader.
func (w *waits) logged(now time.Time, entries []consensus.Entry, leads bool) {
	if len(entries) == 0 || !leads {
		return
	}
	last := entries[len(entries)-1].Index
	switch n := len(w.batches); {
	case n < maxWaits:
		w.batches = append(w.batches, batch{last, last, now})
	case w.batches[n-1].at.IsZero():
		w.batches[n-1].last = last
	default:
		w.batches = append(w.batches, batch{last: last, first: last})
	}
}

// committed notes what a step committed. A leader knows how long the last batch of it took, if that was kept.
func (w *waits) committed(now time.Time, commit raft.Commit, leads bool) {
	w.commit = commit
	if !leads {
		w.batches, w.told = w.batches[:0], raft.Commit{}
	}
	if commit.Upto == 0 {
		return
	}
	n := 0
	for n < len(w.batches) && w.batches[n].last <= commit.Upto {
		n++
	}
	if n == 0 {
		return
	}
	shared := n < len(w.batches) && w.batches[n].covers(commit.Upto)
	if at := w.batches[n-1].at; !at.IsZero() && !shared {
		w.commit.Waited.AllTook = Micros(now.Sub(at))
	}
	w.batches = append(w.batches[:0], w.batches[n:]...)
	w.told = w.commit
}

// say has the messages of a leader that tell of the last commit say how long it took.
func (w *waits) say(messages []consensus.Message) {
	if w.told.Upto == 0 {
		return
	}
	for i := range messages {
		m := &messages[i]
		tells := m.Kind == consensus.MsgAppend || m.Kind == consensus.MsgHeartbeat
		if tells && m.WaitedFor != consensus.NoMember && m.Commit == w.told.Upto {
			m.AllTook = w.told.Waited.AllTook
		}
	}
}

// Micros returns a time in microseconds, as messages bear it: at least one, so that it is known.
func Micros(took time.Duration) uint32 {
	return uint32(min(max(took.Microseconds(), 1), math.MaxUint32))
}
