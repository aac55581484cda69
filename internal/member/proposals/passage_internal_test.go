package proposals

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that an entry has the first step that reached it, in whatever order entries are asked for; that there are never more than so
// many steps; and that what was forgotten is not known, rather than an older step's.
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
	}{{45, 5}, {1, 1}, {10, 1}, {11, 2}, {50, 5}} {
		if got := f.of(row.index); !got.at.Equal(at(row.want)) {
			t.Errorf("entry %d: step of %v, want %v", row.index, got.at, at(row.want))
		}
	}
	if got := f.of(51); !got.at.IsZero() {
		t.Errorf("an entry that no step reached: %+v", got)
	}
	if f.forget(50); len(f.list) != 0 {
		t.Errorf("%d are kept", len(f.list))
	}
	for i := range 3 * maxPassing {
		f.push(passing{upto: consensus.Index(100 + i), at: at(i)})
		if i < maxPassing {
			f.forget(consensus.Index(100 + i)) // applied at once
		}
	}
	if kept := len(f.list) - f.head; kept != maxPassing || cap(f.list) > 4*maxPassing {
		t.Errorf("%d steps are kept, in room for %d", kept, cap(f.list))
	}
	for i, want := range map[int]time.Time{3*maxPassing - 1: at(3*maxPassing - 1), 2 * maxPassing: at(2 * maxPassing), 2*maxPassing - 1: {}} {
		if got := f.of(consensus.Index(100 + i)); !got.at.Equal(want) {
			t.Errorf("entry %d has the step of %v, want %v", 100+i, got.at, want)
		}
	}
}

// Ensure that a member which proposes nothing forgets the steps of what it applies, so that its next proposal has its own.
func TestTable_Resolve_passagesOfOthers(t *testing.T) {
	p := opened(t)
	for i := range consensus.Index(3 * maxPassing) {
		p.Progressed(time.Unix(int64(i), 0), Progress{Commit: i + 1, Ready: i + 1})
		p.Resolve([]consensus.Entry{{Index: i + 1}}, make([]kv.Result, 1))
	}
	if n := len(p.passages.commits.list) + len(p.passages.readies.list); n > 0 || p.passages.commits.lost > 0 {
		t.Errorf("%d steps are kept", n)
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
