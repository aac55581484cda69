package lanes

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that a change of leader wakes the waiting goroutines, that the same leader in a new term does not, and that LostSince
// counts only the loss of a leader.
func TestKnownLeader_follow(t *testing.T) {
	k := NewKnownLeader(1)
	now := time.Unix(100, 0)
	clock := func() time.Time { return now }
	for _, step := range []struct {
		leader consensus.MemberID
		term   consensus.Term
		wakes  bool
		lost   bool
	}{
		{consensus.NoMember, 1, false, false},
		{2, 1, true, false},
		{2, 2, false, false},
		{consensus.NoMember, 3, true, true},
	} {
		changed := k.LeaderChanged()
		now = now.Add(time.Second)
		k.Follow(step.leader, step.term, clock)
		woken := false
		select {
		case <-changed:
			woken = true
		default:
		}
		if woken != step.wakes || k.LostSince(now) != step.lost || k.Leader() != step.leader || k.Term() != step.term {
			t.Errorf("%+v: woken %t, lost %t, leader %v, term %d", step, woken, k.LostSince(now), k.Leader(), k.Term())
		}
	}
}
