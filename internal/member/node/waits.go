package node

import (
	"math"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// maxWaits is how many batches of entries waits keeps.
const maxWaits = 4096

// waits are the batches of entries that this member has logged as the leader and that have not committed: how long a commit
// took is for spans and the log of slow requests.
type waits struct {
	batches []batch
	commit  raft.Commit     // of this step
	told    raft.Commit     // the last one, of which a leader's messages tell
	ready   consensus.Index // as of the step before
}

// batch is the entries that one step logged, up to the last.
type batch struct {
	last consensus.Index
	at   time.Time
}

// logged notes what is in the log of the leader.
func (w *waits) logged(now time.Time, entries []consensus.Entry, leads bool) {
	switch n := len(w.batches); {
	case len(entries) == 0 || !leads:
	case n >= maxWaits:
		w.batches[n-1].last = entries[len(entries)-1].Index
	default:
		w.batches = append(w.batches, batch{entries[len(entries)-1].Index, now})
	}
}

// committed notes what a step committed. A leader knows how long the last batch of it took.
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
	if n > 0 {
		w.commit.Waited.AllTook = Micros(now.Sub(w.batches[n-1].at))
		w.batches = append(w.batches[:0], w.batches[n:]...)
		w.told = w.commit
	}
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
