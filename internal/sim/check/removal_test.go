package check_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/check"
)

// Ensure that a removed member may lead a later term only while it holds the change and does not know that it committed.
func TestSuite_Leader_removed(t *testing.T) {
	three := consensus.SnapshotMeta{Config: consensus.Config{
		Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}},
	}}
	change := replace(1, consensus.ProtocolSingle, 1, 2)
	notice := consensus.Entry{Index: 2, Term: 1, Kind: consensus.EntryNoop,
		Payload: consensus.AppendConfigID(nil, consensus.ConfigID{Index: 1, Term: 1})}
	removed := func(s *check.Suite) {
		for id := consensus.MemberID(1); id <= 3; id++ {
			s.Recovered(id, consensus.HardState{}, three, nil, 0)
		}
		for id := consensus.MemberID(1); id <= 2; id++ {
			s.Appended(id, []consensus.Entry{change, notice})
			s.Synced(id, &consensus.HardState{Term: 1}, []consensus.Entry{change, notice}, nil)
		}
		s.Settled(1, consensus.ConfigID{Index: 1, Term: 1}, 1)
	}
	for _, tc := range []struct {
		what  string
		alarm bool
		story func(s *check.Suite)
	}{
		{"it lacks the change", true, func(s *check.Suite) {
			removed(s)
			s.Leader(3, 2)
		}},
		{"it holds the change and does not know more", false, func(s *check.Suite) {
			removed(s)
			s.Appended(3, []consensus.Entry{change, notice})
			s.Leader(3, 2)
		}},
		{"it knows that the change has committed", true, func(s *check.Suite) {
			removed(s)
			s.Appended(3, []consensus.Entry{change, notice})
			s.Sent([]consensus.Message{{Kind: consensus.MsgHeartbeatReply, From: 3, To: 1, Term: 1, Commit: 1}})
			s.Leader(3, 2)
		}},
	} {
		expect(t, tc.what, story(tc.story), tc.alarm, "election-safety")
	}
}
