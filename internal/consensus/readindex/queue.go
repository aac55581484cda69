package readindex

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Pending is a read that waits at the leader until a quorum has echoed its round and its index has committed. Rounds do
// not fall along a queue, nor do indexes, but where the configuration changed: a read never overtakes an earlier one.
type Pending struct {
	From   consensus.MemberID
	ID     uint64
	Index  consensus.Index    // nothing beyond was answered before the read
	Floor  consensus.Index    // what the leader knows to be committed as the read comes, and the first entry of its term
	Config consensus.ConfigID // in force and settled as it comes; zero while that is not so: Index stays as it is
	Round  uint64             // zero if neither confirmation nor a lower index is waited for
	Asker  bool               // From counts as one that echoed
}

// Queue is a queue that reuses its memory.
type Queue struct {
	queue []Pending
	head  int
}

// Waiting returns the reads that wait, oldest first.
func (q *Queue) Waiting() []Pending { return q.queue[q.head:] }

// Push adds a read.
func (q *Queue) Push(read Pending) { q.queue = append(q.queue, read) }

// Clear drops all reads.
func (q *Queue) Clear() { q.queue, q.head = q.queue[:0], 0 }

// Pop drops the oldest read.
func (q *Queue) Pop() {
	q.head++
	switch {
	case q.head == len(q.queue):
		q.queue, q.head = q.queue[:0], 0
	case q.head >= 1024 && q.head*2 >= len(q.queue):
		q.queue, q.head = slices.Delete(q.queue, 0, q.head), 0
	}
}
