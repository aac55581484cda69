package node

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

func done(g *readGroup) bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

func TestReads_join_sharesOneQuestion(t *testing.T) {
	r := &reads{}
	a, b := r.join(nil), r.join(nil)
	if a != b {
		t.Error("two reads that came together ask twice")
	}
	first := r.take(1)
	if c := r.join(nil); c == a {
		t.Error("a read joined a question that was asked before it came")
	}
	if second := r.take(1); second == first {
		t.Error("two questions have one id")
	}
}

func TestReads_answered_waitsForApply(t *testing.T) {
	r := &reads{applied: 4}
	g := r.join(nil)
	id := r.take(1)
	r.answered([]consensus.ReadIndex{{ID: id, Index: 6}})
	if r.advance(5); done(g) {
		t.Fatal("served at 5, the read index is 6")
	}
	if r.advance(6); !done(g) {
		t.Fatal("not served at its read index")
	}
}

func TestReads_answered_atOnce(t *testing.T) {
	r := &reads{applied: 9}
	g := r.join(nil)
	r.answered([]consensus.ReadIndex{{ID: r.take(1), Index: 9}})
	if !done(g) {
		t.Error("everything is applied, and the read waits")
	}
}

func TestReads_failed_asksAgain(t *testing.T) {
	r := &reads{}
	called := 0
	g := r.join(&Reader{To: told(func() { called++ })})
	old := r.take(1)
	later := r.join(nil)
	r.failed([]uint64{old})
	r.take(2)
	r.answered([]consensus.ReadIndex{{ID: old, Index: 0}}) // a late answer, too low for the later one
	if done(later) {
		t.Fatal("served by the answer to a question that was given up")
	}
	r.answered([]consensus.ReadIndex{{ID: r.lastID, Index: 0}})
	if !done(g) || !done(later) || called != 1 {
		t.Errorf("after the answer: first %v, later %v, called %d times", done(g), done(later), called)
	}
}

func TestReads_resend_onlyOld(t *testing.T) {
	r := &reads{}
	r.join(nil)
	r.take(5)
	if r.resend(4); r.waiting() {
		t.Error("asked again before its time")
	}
	if r.resend(5); !r.waiting() {
		t.Error("not asked again")
	}
}

func TestReads_advance_inOrderOfIndex(t *testing.T) {
	r := &reads{}
	var groups []*readGroup
	for _, index := range []consensus.Index{5, 3, 4} {
		groups = append(groups, r.join(nil))
		r.answered([]consensus.ReadIndex{{ID: r.take(1), Index: index}})
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
	g := r.join(stays)
	r.join(leaves)
	id := r.take(1)
	r.join(reader())
	r.failed([]uint64{id}) // the group is asked again with the one that is forming
	r.leave(leaves)
	if g.readers.Len() != 1 {
		t.Errorf("%d readers are left", g.readers.Len())
	}
	r.answered([]consensus.ReadIndex{{ID: r.take(2), Index: 0}})
	r.leave(stays)
	if called != 2 {
		t.Errorf("%d readers were told", called)
	}
}
