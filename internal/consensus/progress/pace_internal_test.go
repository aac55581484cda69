package progress

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that attempts to hand over go to the member with most of the log, then to another, ever more rarely, and that the pace
// is forgotten once attempts are far apart.
func TestHandoverPace_Next(t *testing.T) {
	peers := func(match ...consensus.Index) (list []*Peer) {
		for i, m := range match {
			list = append(list, &Peer{ID: consensus.MemberID(i + 2), Match: m})
		}
		return list
	}
	var c HandoverPace
	for _, step := range []struct {
		name string
		at   uint64
		fit  []*Peer
		want consensus.MemberID
	}{
		{"nobody can lead", 0, nil, consensus.NoMember},
		{"that nobody could costs no time", 1, peers(5, 9, 7), 3},
		{"too early", 20, peers(5, 9, 7), consensus.NoMember},
		{"another one", 21, peers(5, 9, 7), 4},
		{"twice as long", 60, peers(5, 9, 7), consensus.NoMember},
		{"the first again", 61, peers(5, 9, 7), 3},
		{"there is nobody else", 61 + 80, peers(5, 9)[1:], 3},
		{"long after, as in the beginning", 61 + 80 + 320, peers(5, 9), 3},
		{"and soon again", 61 + 80 + 320 + 20, peers(5, 9), 2},
	} {
		if got := c.Next(step.at, 10, step.fit); got != step.want {
			t.Errorf("%s: got %v, want %v", step.name, got, step.want)
		}
	}
	var first HandoverPace // the one that was tried stands before the others
	if got := []consensus.MemberID{first.Next(0, 10, peers(9, 5, 7)), first.Next(20, 10, peers(9, 5, 7))}; got[0] != 2 || got[1] != 4 {
		t.Errorf("got %v, want the one with most of the log, then the next one", got)
	}
	now := c.notBefore
	for range 20 {
		c.Next(now, 10, peers(1))
		now = c.notBefore
	}
	if last := now; c.Next(now, 10, peers(1)) == consensus.NoMember || c.notBefore-last != 10<<maxPauseDoublings {
		t.Errorf("the pause is %d ticks after many attempts, want %d", c.notBefore-last, 10<<maxPauseDoublings)
	}
}
