package proposals

import (
	"cmp"
	"slices"
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

// maxPassing is how many steps a passages keeps of each kind: beyond that it forgets the oldest ones. Steps are forgotten as
// their entries are applied.
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
	lost consensus.Index // of entries up to this one no step is known: there were too many
}

// push adds a step that reaches further than those before it.
func (f *fifo) push(p passing) {
	n := len(f.list)
	if n > f.head && f.list[n-1].upto >= p.upto {
		return
	}
	if n-f.head >= maxPassing {
		f.lost = f.list[f.head].upto
		f.head++
	}
	if f.head > 0 && len(f.list) == cap(f.list) {
		n := copy(f.list, f.list[f.head:])
		f.list, f.head = f.list[:n], 0
	}
	f.list = append(f.list, p)
}

// of returns the step of an entry: the first one that reached it. The zero value: it is not known.
func (f *fifo) of(index consensus.Index) passing {
	steps := f.list[f.head:]
	at, _ := slices.BinarySearchFunc(steps, index, func(p passing, to consensus.Index) int { return cmp.Compare(p.upto, to) })
	if at == len(steps) || index <= f.lost {
		return passing{}
	}
	return steps[at]
}

// forget forgets the steps that reach no further than an entry.
func (f *fifo) forget(upto consensus.Index) {
	for f.head < len(f.list) && f.list[f.head].upto <= upto {
		f.head++
	}
	if f.head == len(f.list) {
		f.list, f.head = f.list[:0], 0
	}
}

// applied forgets the steps of the entries up to one.
func (p *passages) applied(upto consensus.Index) {
	p.commits.forget(upto)
	p.readies.forget(upto)
}
