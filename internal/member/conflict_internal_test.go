package member

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/lanes"
)

// Ensure that a refused log of a leader is an alarm as long as that leader leads, and that the alarm does not begin with the
// advice to empty the data directory: it may be the only copy.
func TestKnownLeader_refused(t *testing.T) {
	k := lanes.NewKnownLeader(1)
	e := raft.LogConflict{Leader: 2, Term: 5, At: consensus.Position{Index: 10, Term: 5}, Own: 4}
	for _, step := range []struct {
		leader consensus.MemberID
		term   consensus.Term
		want   bool
	}{{2, 5, true}, {consensus.NoMember, 6, false}, {2, 6, false}, {3, 5, false}, {2, 5, true}} {
		k.Follow(step.leader, step.term, time.Now)
		k.Refuses(e)
		if got := k.Refused(); (got != nil) != step.want {
			t.Errorf("%+v: got %v", step, got)
		}
	}
	text := conflictWords(&e, "m1", "m2")
	at := 0
	for _, part := range []string{"m1 refuses the log of its leader m2 (2) of term 5: entry 10.5 there", "may have the only " +
		"copy",
		"Empty, reset and remove no member", "Stop the clients", "--dry-run", "run `quorate recover`", "start m1 with " +
			typed.Emptied, "run `quorate member reset m1` at a member that serves, and keep what was moved"} {
		next := strings.Index(text, part)
		if next < at {
			t.Errorf("%q is missing, or comes too early, in %q", part, text)
		}
		at = next
	}
}
