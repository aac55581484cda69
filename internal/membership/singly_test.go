package membership_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/membership"
)

// Ensure that a job by protocol single is made of entries that move one voter each, in the order that tolerates most failures on
// the way, and that the plan shows each with its tolerance.
func TestNext_singly(t *testing.T) {
	type stage struct {
		title            string
		voters, tolerate int
	}
	for _, tc := range []struct {
		name    string
		cluster func(t *testing.T) *pretended
		spec    membership.Spec
		want    []stage // that move voters
	}{
		{"replace a follower", func(t *testing.T) *pretended { return found(t, 3, 0) },
			membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Add: []membership.Newcomer{newcomer(7)}},
			[]stage{{"make m7 a voter in one step", 4, 1}, {"remove m2 in one step", 3, 1}}},
		{"replace a dead voter", func(t *testing.T) *pretended { return found(t, 3, 0).silence(2) },
			membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Add: []membership.Newcomer{newcomer(7)}},
			[]stage{{"make m7 a voter in one step", 4, 0}, {"remove m2 in one step", 3, 1}}},
		{"two dead of five", func(t *testing.T) *pretended { return found(t, 5, 0).silence(4, 5) },
			membership.Spec{Remove: ids{4, 5}, Add: []membership.Newcomer{newcomer(7), newcomer(8)}},
			[]stage{{"make m7 a voter in one step", 6, 0}, {"make m8 a voter in one step", 7, 1}, {"remove m4 in one step", 6, 1},
				{"remove m5 in one step", 5, 2}}},
		{"everybody", func(t *testing.T) *pretended { return found(t, 3, 0) },
			membership.Spec{Remove: ids{1, 2, 3}, Add: []membership.Newcomer{newcomer(7), newcomer(8), newcomer(9)}},
			[]stage{{"make m7 a voter in one step", 4, 1}, {"make m8 a voter in one step", 5, 2}, {"make m9 a voter in one step", 6, 2},
				{"remove m1 in one step", 5, 2}, {"remove m2 in one step", 4, 1}, {"remove m3 in one step", 3, 1}}},
		{"fewer", func(t *testing.T) *pretended { return found(t, 5, 0) }, membership.Spec{Remove: ids{2}, Demote: ids{3}},
			[]stage{{"remove m2 in one step", 4, 1}, {"make m3 a learner in one step", 3, 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.spec.Protocol = consensus.ProtocolSingle
			c := tc.cluster(t)
			plan := membership.Draft(&tc.spec, c.view())
			var got []stage
			voters := plan.Now.Voters
			for _, step := range plan.Steps {
				if step.After.Voters != voters {
					got = append(got, stage{step.Title, step.After.Voters, step.After.Tolerates})
					if d := step.After.Voters - voters; d != 1 && d != -1 || step.During.Outgoing > 0 {
						t.Errorf("%s goes from %d voters to %+v", step.Title, voters, step)
					}
				}
				voters = step.After.Voters
			}
			if len(plan.Blockers) > 0 || !slices.Equal(got, tc.want) {
				t.Errorf("the plan has the steps %+v (%v), want %+v", got, plan.Blockers, tc.want)
			}
			moves, before := 0, c.config.Clone()
			job := membership.Job{ID: 1, Spec: tc.spec}
			c.run(&job, func(int) {
				switch n := reconfig.VotersChanged(&before, &c.config); {
				case n > 1 || c.config.IsJoint():
					t.Errorf("%d voters move at once: from %v to %v", n, before.Voters, c.config.Voters)
				case n == 1:
					moves++
				}
				before = c.config.Clone()
			})
			if unmet := c.fulfilled(&tc.spec); job.State != membership.StateDone || unmet != "" || moves != len(tc.want) {
				t.Errorf("got %v (%s) after %d moves, %s", job.State, job.Message, moves, unmet)
			}
		})
	}
}
