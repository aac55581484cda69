package integrity

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

func TestJudge(t *testing.T) {
	voters := []consensus.MemberID{1, 2, 3, 4, 5}
	of := func(member consensus.MemberID, sum uint64) Sample {
		return Sample{Member: member, Base: 0, At: 9, Sum: sum}
	}
	elsewhere := Sample{Member: 3, Base: 7, At: 9, Sum: 99}
	for name, c := range map[string]struct {
		voters    int
		samples   []Sample
		corrupt   []consensus.MemberID
		undecided bool
	}{
		"nobody answers":                        {3, nil, nil, false},
		"one alone":                             {3, []Sample{of(1, 1)}, nil, false},
		"all agree":                             {3, []Sample{of(1, 1), of(2, 1), of(3, 1)}, nil, false},
		"two to one":                            {3, []Sample{of(1, 1), of(2, 2), of(3, 1)}, []consensus.MemberID{2}, false},
		"two to one, two are silent":            {5, []Sample{of(1, 1), of(2, 2), of(3, 1)}, []consensus.MemberID{2}, false},
		"one to one":                            {3, []Sample{of(1, 1), of(2, 2)}, nil, true},
		"three differ":                          {3, []Sample{of(1, 1), of(2, 2), of(3, 3)}, nil, true},
		"two, one, one":                         {5, []Sample{of(1, 1), of(2, 1), of(3, 2), of(4, 3)}, nil, true},
		"three to two":                          {5, []Sample{of(1, 1), of(2, 1), of(3, 2), of(4, 1), of(5, 2)}, []consensus.MemberID{3, 5}, false},
		"a learner differs":                     {2, []Sample{of(1, 1), of(2, 1), of(9, 2)}, []consensus.MemberID{9}, false},
		"a learner does not decide":             {2, []Sample{of(1, 1), of(2, 2), of(9, 2)}, nil, true},
		"the only voter, and a learner":         {1, []Sample{of(1, 1), of(9, 2)}, nil, false},
		"what is of another place says nothing": {3, []Sample{of(1, 1), of(2, 1), elsewhere}, nil, false},
	} {
		if v := Judge(voters[:c.voters], c.samples); !slices.Equal(v.Corrupt, c.corrupt) || v.Undecided != c.undecided {
			t.Errorf("%s: %+v, want %v %v", name, v, c.corrupt, c.undecided)
		}
	}
}
