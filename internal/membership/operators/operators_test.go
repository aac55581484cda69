package operators_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/membership/operators"
)

// Ensure that nothing that two operators ask for breaks a law, as deep as a test may take.
func TestExplore(t *testing.T) {
	states := 5_000
	if testing.Short() {
		states = 500
	}
	for _, voters := range []int{3, 5} {
		f, res := operators.Explore(operators.Options{Voters: voters, States: states})
		t.Logf("%d voters: %+v", voters, res)
		if f != nil {
			t.Errorf("%d voters: %s\n%q", voters, f.Broken, f.Moves)
		}
	}
}

// Ensure that the exploration finds that a rule is missing.
func TestMutation_Try(t *testing.T) {
	for _, mu := range operators.Mutations() {
		limit := 2 * time.Minute
		if mu.Law == "" {
			limit = time.Second
		}
		f, res := mu.Try(limit)
		t.Logf("%s: %+v %+v", mu.Name, f, res)
		if (f != nil) != (mu.Law != "") || f != nil && f.Law() != mu.Law {
			t.Errorf("%s: %+v after %+v, want law %q", mu.Name, f, res, mu.Law)
		}
	}
}
