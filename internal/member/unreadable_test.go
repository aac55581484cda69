package member_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that a leader refuses what is no command of this build, whoever offers it, and that no member stops: one entry with it
// would stop them all.
func TestMember_Offer_unreadable(t *testing.T) {
	c := startCluster(t, 3)
	e := c.listen()
	leader := c.leader()
	session := c.openSession(leader)
	laterAlarm := (&kv.Command{Alarm: &kv.AlarmOp{Kind: 200}}).Append(nil)
	for i, payload := range [][]byte{laterAlarm, {1, 250}, {200, 1}, {}} {
		state := leader.Clients().ClusterState()
		leader.Clients().Offer(c.ctx, testClient, consensus.Message{
			Kind: consensus.MsgFastPropose, Term: state.Term, Config: state.Config, Proposals: []consensus.Proposal{{
				ID:   consensus.ProposalID{Session: session, Sequence: uint64(i) + 1},
				Kind: consensus.EntryCommand, Payload: payload,
			}},
		})
		m := c.heard(e)
		for m.Kind != consensus.MsgProposeReply {
			m = c.heard(e)
		}
		if len(m.Refusals) != 1 || m.Refusals[0].Reason != consensus.ReasonBadRequest {
			t.Errorf("% x: refused: %v, want one bad request", payload, m.Refusals)
		}
	}
	c.put(leader, "k")
	c.level()
}
