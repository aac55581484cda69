package reconfig_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// Ensure that the mark stays with a member through every other change, that it is taken away by name only, and that the last
// voter without it keeps none.
func TestNext_cordonStays(t *testing.T) {
	facts := reconfig.Facts{Active: ids{1, 2, 3, 4}, CaughtUp: ids{1, 2, 3, 4}, Strict: true}
	now, id := config(ids{1, 2, 3}, ids{4}), consensus.ConfigID{Index: 7, Term: 2}
	ask := func(want consensus.RefusalReason, steps ...consensus.ChangeStep) {
		t.Helper()
		change, reason := reconfig.Next(&now, id, &consensus.ChangeRequest{Steps: steps}, &facts)
		if reason != want {
			t.Fatalf("%v: got %q, want %q", steps, reason, want)
		}
		if reason == consensus.ReasonNone {
			now = change.Config.Settle()
		}
	}
	marked := func(want ...consensus.MemberID) {
		t.Helper()
		var got ids
		for _, m := range now.Members {
			if m.Cordoned {
				got = append(got, m.ID)
			}
		}
		if roles(&consensus.Config{Voters: got}) != roles(&consensus.Config{Voters: want}) {
			t.Fatalf("cordoned are %v, want %v", got, want)
		}
	}
	ask(0, step(consensus.ChangeCordon, 2), step(consensus.ChangeCordon, 4))
	marked(2, 4)
	ask(consensus.ReasonNoChange, step(consensus.ChangeCordon, 2))
	ask(consensus.ReasonAllCordoned, step(consensus.ChangeCordon, 1), step(consensus.ChangeCordon, 3))
	moved := step(consensus.ChangeUpdate, 2)
	moved.Member.PeerURLs = []string{"http://elsewhere:2380"}
	ask(0, moved)
	ask(0, step(consensus.ChangeDemote, 2), step(consensus.ChangePromote, 4))
	marked(2, 4)
	ask(0, step(consensus.ChangePromote, 2))
	marked(2, 4)
	ask(0, step(consensus.ChangeRemove, 1))
	ask(consensus.ReasonAllCordoned, step(consensus.ChangeCordon, 3))
	ask(0, step(consensus.ChangeRemove, 3))
	marked(2, 4)
	for _, id := range now.Voters {
		if now.Cordoned(id) {
			t.Errorf("every voter is cordoned, and %v is not to lead", id)
		}
	}
	ask(0, step(consensus.ChangeUncordon, 2))
	marked(4)
	if !now.Cordoned(4) || now.Cordoned(2) {
		t.Errorf("the mark of 4 counts: %v, that of 2: %v", now.Cordoned(4), now.Cordoned(2))
	}
}
