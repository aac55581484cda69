package reconfig_test

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// Ensure what ADR 0014 takes for granted, for all sets of voters among five members: a change of several voters goes through a
// joint configuration or is refused, and protocol apply never goes from two voters to one.
func TestNext_premisesOfTheFastPath(t *testing.T) {
	everybody := ids{1, 2, 3, 4, 5}
	pick := func(set int) (in, out ids) {
		for i, id := range everybody {
			if set&(1<<i) != 0 {
				in = append(in, id)
			} else {
				out = append(out, id)
			}
		}
		return in, out
	}
	facts := reconfig.Facts{Active: everybody, CaughtUp: everybody}
	made := 0
	for from := 1; from < 32; from++ {
		for to := 1; to < 32; to++ {
			voters, learners := pick(from)
			target, _ := pick(to)
			var steps []consensus.ChangeStep
			for _, id := range everybody {
				switch was, is := slices.Contains(voters, id), slices.Contains(target, id); {
				case was && !is:
					steps = append(steps, step(consensus.ChangeDemote, id))
				case is && !was:
					steps = append(steps, step(consensus.ChangePromote, id))
				}
			}
			for protocol := consensus.ProtocolAuto; protocol <= consensus.ProtocolApply; protocol++ {
				current := config(voters, learners)
				request := consensus.ChangeRequest{Protocol: protocol, Steps: steps}
				change, reason := reconfig.Next(&current, consensus.ConfigID{Index: 7, Term: 2}, &request, &facts)
				if reason != consensus.ReasonNone {
					continue
				}
				made++
				if several := bits.OnesCount(uint(from^to)) > 1; several && !change.Config.IsJoint() {
					t.Errorf("%v to %v by %v is not joint", voters, target, protocol)
				}
				if change.Protocol == consensus.ProtocolApply && len(voters) == 2 && len(target) == 1 {
					t.Errorf("%v to %v by %v", voters, target, protocol)
				}
			}
		}
	}
	if made < 2000 {
		t.Errorf("only %d changes were made", made)
	}
}
