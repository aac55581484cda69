package membership_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// Ensure that a job says so once its change is decided and not settled yet: by joint-early when the first entry has committed,
// and by joint never before the second one has.
func TestNext_decided(t *testing.T) {
	for protocol, want := range map[consensus.Protocol]bool{consensus.ProtocolJointEarly: true, consensus.ProtocolJoint: false} {
		c := found(t, 3, 1)
		job := membership.Job{ID: 1, Spec: membership.Spec{Remove: ids{2}, Promote: ids{4}, Protocol: protocol}}
		told := false
		c.run(&job, func(int) {
			v := c.view()
			says := strings.Contains(membership.Next(&job, v).Message, "the change is decided")
			if says && (v.Undecided || !v.Config.IsJoint()) {
				t.Errorf("%v: %+v counts as decided", protocol, v)
			}
			told = told || says
		})
		if told != want || job.State != membership.StateDone {
			t.Errorf("%v: told that it is decided: %v; %v", protocol, told, job.State)
		}
	}
}
