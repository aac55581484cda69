package readindex

import (
	"sort"

	"github.com/quorate/quorate/internal/consensus"
)

// Waiting are the reads that wait at a leader. Its own term confirms some as they come, by a leader lease or by the voter that
// asks; the others wait for a round. Both wait until the log has committed as far as they need.
type Waiting struct {
	sure, asking Queue
}

// Add adds a read; sure says that it waits for no round to be confirmed.
func (w *Waiting) Add(read Pending, sure bool) {
	if sure {
		w.sure.Push(read)
		return
	}
	w.asking.Push(read)
}

// Asks reports whether the echo of a round may let a read go.
func (w *Waiting) Asks() bool {
	sure := w.sure.Waiting()
	return len(w.asking.Waiting()) > 0 || len(sure) > 0 && sure[len(sure)-1].Round > 0
}

// Answer hands out the reads whose index has committed, in the order of arrival; those that wait for a round only if it is
// confirmed.
func (w *Waiting) Answer(commit consensus.Index, confirmed func(*Pending) bool, give func(*Pending)) {
	sure := func(*Pending) bool { return true }
	for _, q := range [...]struct {
		*Queue
		confirmed func(*Pending) bool
	}{{&w.sure, sure}, {&w.asking, confirmed}} {
		for len(q.Waiting()) > 0 && q.Waiting()[0].Index <= commit && q.confirmed(&q.Waiting()[0]) {
			give(&q.Waiting()[0])
			q.Pop()
		}
	}
}

// Narrow lowers the indexes of the reads whose rounds lie after from, up to to, and which came under a configuration: nothing
// beyond what bound gives for their round can have been answered before them.
func (w *Waiting) Narrow(from, to uint64, config consensus.ConfigID, bound func(round uint64) consensus.Index) {
	for _, q := range [...]*Queue{&w.sure, &w.asking} {
		reads := q.Waiting()
		known, most := uint64(0), consensus.Index(0)
		at := sort.Search(len(reads), func(i int) bool { return reads[i].Round > from })
		for ; at < len(reads) && reads[at].Round <= to; at++ {
			r := &reads[at]
			if r.Config != config {
				continue
			}
			if known != r.Round {
				known, most = r.Round, bound(r.Round)
			}
			r.Index = min(r.Index, max(most, r.Floor))
		}
	}
}

// Fail hands out all reads, in any state, and forgets them.
func (w *Waiting) Fail(give func(*Pending)) {
	for _, q := range [...]*Queue{&w.sure, &w.asking} {
		for i := range q.Waiting() {
			give(&q.Waiting()[i])
		}
		q.Clear()
	}
}
