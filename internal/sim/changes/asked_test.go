package changes_test

import (
	"maps"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/changes"
)

func TestAsked_Leaving(t *testing.T) {
	var a changes.Asked
	alive := true
	ask := func(kind consensus.ChangeKind, id consensus.MemberID) (over func()) {
		request := consensus.ChangeOne(kind, consensus.Member{ID: id})
		return a.Add(&request, func() bool { return alive })
	}
	ask(consensus.ChangeAddLearner, 1)
	over := ask(consensus.ChangeRemove, 2)
	ask(consensus.ChangeDemote, 3)
	if got := a.Leaving(); !maps.Equal(got, map[consensus.MemberID]bool{2: true, 3: true}) {
		t.Errorf("got %v, want 2 and 3", got)
	}
	over()
	if got := a.Leaving(); !maps.Equal(got, map[consensus.MemberID]bool{3: true}) {
		t.Errorf("once 2 has an outcome: got %v", got)
	}
	alive = false
	if got := a.Leaving(); len(got) > 0 {
		t.Errorf("once the process has ended: got %v", got)
	}
}
