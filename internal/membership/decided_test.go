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

// Ensure that a joint-early change counts as decided when C(new) is logged and has not committed: no log has it before C(old,new) has.
// The job says so by what the leader knows, before its row does; by joint, and by single, an entry that has not committed decides
// nothing.
func TestTold(t *testing.T) {
	for protocol, want := range map[consensus.Protocol]membership.Phase{
		consensus.ProtocolJointEarly: membership.PhaseDecided,
		consensus.ProtocolJoint:      membership.PhaseSwap, consensus.ProtocolSingle: membership.PhaseSwap,
	} {
		c := found(t, 3, 0)
		v := c.view()
		v.Config.Voters, v.Protocol, v.Settled, v.Undecided = ids{1, 2}, protocol, false, true
		v.ID.Index++
		rows := []membership.Job{
			{ID: 1, State: membership.StateRunning, Phase: membership.PhaseSwap, Spec: membership.Spec{Remove: ids{3}}},
			{ID: 2, State: membership.StateQueued, Spec: membership.Spec{Remove: ids{2}}},
		}
		told := membership.Told(rows, v)
		if told[0].Phase != want || told[1].Phase != "" || rows[0].Phase != membership.PhaseSwap {
			t.Errorf("%v: told of phases %q and %q; want %q and none, and the rows as they were", protocol, told[0].Phase,
				told[1].Phase, want)
		}
		if says := strings.Contains(told[0].Message, "the change is decided"); says != (want == membership.PhaseDecided) {
			t.Errorf("%v: the message is %q", protocol, told[0].Message)
		}
	}
}
