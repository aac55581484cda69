package proposals

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Passage says when a proposal, or a question for reads, took its steps, by this member's clock, and what it waited for. A time
// is zero if the step was not seen here.
type Passage struct {
	Route Route
	Left  time.Time // for the leader, or into its log, or to all voters; the first time
	Known time.Time // its outcome was known here: it had committed, or was decided; of a read, its index
	Ready time.Time // it was on the disk here, too, and could be applied
	// Waited is the member that completed the quorum, with what it and the leader say.
	Waited consensus.Waited
	Leader consensus.MemberID // as of Known
}

// Passenger is a Completion that is told the passage, instead of Complete.
type Passenger interface {
	Completion
	CompleteAfter(p Passage, result kv.Result, err error)
}

// Tell completes what waits for an outcome, with the passage if that is wanted.
func Tell(done Completion, p Passage, result kv.Result, err error) {
	if wants, ok := done.(Passenger); ok {
		if err != nil {
			p.Route = ""
		}
		wants.CompleteAfter(p, result, err)
		return
	}
	done.Complete(result, err)
}

// Progress is how far the log has come with a step of the core.
type Progress struct {
	Commit consensus.Index // zero: no further
	Waited consensus.Waited
	Leader consensus.MemberID
	Ready  consensus.Index // committed and durable here
}

// maxPassing is how many steps a passages keeps. They are forgotten as their entries are applied.
const maxPassing = 4096

// passages are the steps by which entries committed, and were durable here, that are not applied yet.
type passages struct {
	commits fifo
	readies fifo
}

// passing is a step of the entries up to an index.
type passing struct {
	upto   consensus.Index
	at     time.Time
	waited consensus.Waited
	leader consensus.MemberID
}

// fifo is a queue by index that reuses its memory.
type fifo struct {
	list []passing
	head int
}

// push adds a step that reaches further than those before it. If it is full, the last one is taken to reach so far.
func (f *fifo) push(p passing) {
	if n := len(f.list); n > f.head && (f.list[n-1].upto >= p.upto || n-f.head >= maxPassing) {
		f.list[n-1].upto = max(f.list[n-1].upto, p.upto)
		return
	}
	if f.head > 0 && len(f.list) == cap(f.list) {
		n := copy(f.list, f.list[f.head:])
		f.list, f.head = f.list[:n], 0
	}
	f.list = append(f.list, p)
}

// of returns the step of an entry, and forgets those of the entries before it.
func (f *fifo) of(index consensus.Index) passing {
	for f.head < len(f.list) && f.list[f.head].upto < index {
		f.head++
	}
	if f.head == len(f.list) {
		f.list, f.head = f.list[:0], 0
		return passing{}
	}
	return f.list[f.head]
}
