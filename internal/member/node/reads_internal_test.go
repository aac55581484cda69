package node

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/proposals"
)

// awaited is a reader, and whether it was told.
type awaited struct {
	Reader
	told bool
}

func (r *reads) begin() *awaited {
	a := &awaited{}
	a.To = told(func() { a.told = true })
	r.join(&a.Reader)
	return a
}

func done(a *awaited) bool { return a.told }

func TestReads_join_sharesOneQuestion(t *testing.T) {
	r := &reads{}
	a, b := r.begin(), r.begin()
	first := r.take(1, time.Time{})
	if r.waiting() {
		t.Error("two reads that came together ask twice")
	}
	c := r.begin()
	if second := r.take(1, time.Time{}); second == first {
		t.Error("two questions have one id")
	}
	r.answered([]consensus.ReadIndex{{ID: first, Index: 0}}, proposals.Passage{})
	if !done(a) || !done(b) || done(c) {
		t.Errorf("told: %v and %v of the question, %v of the next one", done(a), done(b), done(c))
	}
}

func TestReads_answered_waitsForApply(t *testing.T) {
	r := &reads{applied: 4}
	g := r.begin()
	id := r.take(1, time.Time{})
	r.answered([]consensus.ReadIndex{{ID: id, Index: 6}}, proposals.Passage{})
	if r.advance(5); done(g) {
		t.Fatal("served at 5, the read index is 6")
	}
	if r.advance(6); !done(g) {
		t.Fatal("not served at its read index")
	}
}

func TestReads_answered_atOnce(t *testing.T) {
	r := &reads{applied: 9}
	g := r.begin()
	r.answered([]consensus.ReadIndex{{ID: r.take(1, time.Time{}), Index: 9}}, proposals.Passage{})
	if !done(g) {
		t.Error("everything is applied, and the read waits")
	}
}

func TestReads_failed_asksAgain(t *testing.T) {
	r := &reads{}
	called := 0
	g := &awaited{}
	g.To = told(func() { g.told = true; called++ })
	r.join(&g.Reader)
	old := r.take(1, time.Time{})
	later := r.begin()
	r.failed([]uint64{old})
	r.take(2, time.Time{})
	r.answered([]consensus.ReadIndex{{ID: old, Index: 0}}, proposals.Passage{}) // a late answer, too low for the later one
	if done(later) {
		t.Fatal("served by the answer to a question that was given up")
	}
	r.answered([]consensus.ReadIndex{{ID: r.lastID, Index: 0}}, proposals.Passage{})
	if !done(g) || !done(later) || called != 1 {
		t.Errorf("after the answer: first %v, later %v, called %d times", done(g), done(later), called)
	}
}

func TestReads_resend_onlyOld(t *testing.T) {
	r := &reads{}
	r.begin()
	r.take(5, time.Time{})
	if r.resend(4); r.waiting() {
		t.Error("asked again before its time")
	}
	if r.resend(5); !r.waiting() {
		t.Error("not asked again")
	}
}

func TestReads_advance_inOrderOfIndex(t *testing.T) {
	r := &reads{}
	var groups []*awaited
	for _, index := range []consensus.Index{5, 3, 4} {
		groups = append(groups, r.begin())
		r.answered([]consensus.ReadIndex{{ID: r.take(1, time.Time{}), Index: index}}, proposals.Passage{})
	}
	r.advance(4)
	if done(groups[0]) || !done(groups[1]) || !done(groups[2]) {
		t.Errorf("at 4: got %v %v %v, want false true true", done(groups[0]), done(groups[1]), done(groups[2]))
	}
}

// Ensure that a reader that has left is not told, in whichever group it is, and takes nothing any more.
func TestReads_leave(t *testing.T) {
	r := &reads{}
	called := 0
	reader := func() *Reader { return &Reader{To: told(func() { called++ })} }
	stays, leaves := reader(), reader()
	r.join(stays)
	r.join(leaves)
	id := r.take(1, time.Time{})
	r.join(reader())
	r.failed([]uint64{id}) // the group is asked again with the one that is forming
	r.leave(leaves)
	if r.forming.readers.Len() != 2 {
		t.Errorf("%d readers are left", r.forming.readers.Len())
	}
	r.answered([]consensus.ReadIndex{{ID: r.take(2, time.Time{}), Index: 0}}, proposals.Passage{})
	r.leave(stays)
	if called != 2 {
		t.Errorf("%d readers were told", called)
	}
}

// Ensure that readers which gave up leave nothing behind, however often they ask: not while no answer comes, and not while
// nothing is applied.
func TestReads_leave_nothingBehind(t *testing.T) {
	r := &reads{}
	for tick := range uint64(1000) {
		gone := r.begin()
		r.take(tick, time.Time{})
		r.leave(&gone.Reader)
		r.resend(tick)
	}
	if r.forming != nil || len(r.asked) > 0 {
		t.Errorf("%d questions are asked for nobody", len(r.asked))
	}
	for tick := range uint64(1000) {
		gone := r.begin()
		id := r.take(tick, time.Time{})
		r.leave(&gone.Reader)
		r.answered([]consensus.ReadIndex{{ID: id, Index: consensus.Index(tick + 1)}}, proposals.Passage{})
		r.begin()
		r.answered([]consensus.ReadIndex{{ID: r.take(tick, time.Time{}), Index: 2000}}, proposals.Passage{})
	}
	if len(r.parked) != 1 || r.parked[0].readers.Len() != 1000 {
		t.Errorf("%d groups wait to be applied, the first one with %d readers", len(r.parked), r.parked[0].readers.Len())
	}
}
