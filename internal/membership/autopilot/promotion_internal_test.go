package autopilot

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// A learner that the leader refuses does not keep the next one waiting; any other failure ends the round.
func TestFirstAccepted_goesOn(t *testing.T) {
	ids := []consensus.MemberID{1, 2, 3}
	refused := &membership.RefusedError{Reason: consensus.ReasonLearnerLags}
	broken := errors.New("broken")
	for _, tc := range []struct {
		name     string
		outcomes map[consensus.MemberID]error
		want     consensus.MemberID
		err      error
	}{
		{"the first is refused", map[consensus.MemberID]error{1: refused}, 2, nil},
		{"all are", map[consensus.MemberID]error{1: refused, 2: refused, 3: refused}, consensus.NoMember, nil},
		{"the second fails", map[consensus.MemberID]error{1: refused, 2: broken}, 2, broken},
	} {
		got, err := FirstAccepted(ids, func(id consensus.MemberID) error { return tc.outcomes[id] })
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: got %v, %v, want %v, %v", tc.name, got, err, tc.want, tc.err)
		}
	}
}
