package membership_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// Ensure that a job says so once its change is decided and not settled yet: by joint-early when the first entry has committed,
// and by joint not before the second one has.
func TestNext_decided(t *testing.T) {
	for protocol, want := range map[consensus.Protocol]bool{consensus.ProtocolJointEarly: true, consensus.ProtocolJoint: false} {
		c := found(t, 3, 1)
		job := membership.Job{ID: 1, Spec: membership.Spec{Remove: ids{2}, Promote: ids{4}, Protocol: protocol}}
		told := false
		c.run(&job, func(int) {
			v := c.view()
			says := strings.Contains(membership.Next(&job, v).Message, "the change is decided")
			if says && !told && (v.Undecided || v.Config.IsJoint() != want) {
				t.Errorf("%v: %+v counts as decided", protocol, v)
			}
			if phase := membership.Next(&job, v).Phase; says != (phase == membership.PhaseDecided) {
				t.Errorf("%v: says that it is decided: %v, in phase %s", protocol, says, phase)
			}
			told = told || says
		})
		if !told || job.State != membership.StateDone {
			t.Errorf("%v: told that it is decided: %v; %v", protocol, told, job.State)
		}
	}
}
