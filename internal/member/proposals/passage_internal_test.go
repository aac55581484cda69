package proposals

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that an entry has the first step that reached it, that steps are forgotten with their entries, and that there are never
// more than so many.
func TestFifo(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	f := &fifo{}
	for i := 1; i <= 5; i++ {
		f.push(passing{upto: consensus.Index(10 * i), at: at(i)})
		f.push(passing{upto: consensus.Index(10 * i), at: at(i + 100)}) // no further
	}
	for _, row := range []struct {
		index consensus.Index
		want  int
	}{{1, 1}, {10, 1}, {11, 2}, {45, 5}, {50, 5}} {
		if got := f.of(row.index); !got.at.Equal(at(row.want)) {
			t.Errorf("entry %d: step of %v, want %v", row.index, got.at, at(row.want))
		}
	}
	if got := f.of(51); !got.at.IsZero() || len(f.list) != 0 {
		t.Errorf("an entry that no step reached: %+v, %d are kept", got, len(f.list))
	}
	for i := range 3 * maxPassing {
		f.push(passing{upto: consensus.Index(100 + i), at: at(i)})
		if i < maxPassing {
			f.of(consensus.Index(100 + i)) // applied at once
		}
	}
	if kept := len(f.list) - f.head; kept != maxPassing || cap(f.list) > 4*maxPassing {
		t.Errorf("%d steps are kept, in room for %d", kept, cap(f.list))
	}
	if got := f.of(100 + 3*maxPassing - 1); !got.at.Equal(at(2*maxPassing - 2)) {
		t.Errorf("the last entry: %+v", got)
	}
}

// passenger takes a passage.
type passenger struct {
	by  Passage
	err error
}

func (p *passenger) Complete(kv.Result, error)                        {}
func (p *passenger) CompleteAfter(by Passage, _ kv.Result, err error) { p.by, p.err = by, err }

// Ensure that a proposal is told when it left first, what committed it, when it was durable here, and for whom it waited.
func TestTable_Resolve_passage(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	p := opened(t)
	q := &passenger{}
	if _, err := p.Add(consensus.EntryCommand, []byte("a"), q); err != nil {
		t.Fatal(err)
	}
	out := p.Take(1, at(1), false)
	p.Resend(1)
	p.Take(2, at(2), false)
	waited := consensus.Waited{WaitedFor: 3, DiskTook: 4, AllTook: 5}
	p.Progressed(at(3), Progress{Commit: 7, Waited: waited, Leader: 9, Ready: 6})
	p.Progressed(at(4), Progress{Ready: 7})
	p.Progressed(at(5), Progress{Commit: 8, Ready: 8})
	p.Resolve([]consensus.Entry{{Index: 7, Proposal: out.Commands[0].ID}}, make([]kv.Result, 1))
	want := Passage{Route: RouteLeader, Left: at(1), Known: at(3), Ready: at(4), Waited: waited, Leader: 9}
	if q.by != want || q.err != nil {
		t.Errorf("got %+v, %v; want %+v", q.by, q.err, want)
	}
}
