package member_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Ensure that no road of native clients to the log takes a command whose feature level is not active, or one with a value that
// this build does not know; and that each takes the command of a level that is active.
func TestClients_EncodeFor_checks(t *testing.T) {
	c := startWith(t, 1, &cluster{build: nextlevel.Level})
	n := c.leader()
	session := c.openSession(n)
	id := func(sequence uint64) consensus.ProposalID {
		return consensus.ProposalID{Session: session, Sequence: sequence}
	}
	roads := []func(id consensus.ProposalID, command *kv.Command, done proposals.Completion) error{
		func(id consensus.ProposalID, command *kv.Command, _ proposals.Completion) error {
			_, err := n.Clients().EncodeFor(id, command)
			return err
		},
		func(id consensus.ProposalID, command *kv.Command, done proposals.Completion) error {
			_, _, err := n.Clients().ExpectFor(id, command, done)
			return err
		},
		n.Clients().ProposeFor,
		func(id consensus.ProposalID, command *kv.Command, done proposals.Completion) (err error) {
			n.Clients().ProposeAllFor([]clients.Proposed{{ID: id, Command: command, Done: done}},
				func(_ int, why error) { err = why })
			return err
		},
	}
	later := &kv.Command{Alarm: &kv.AlarmOp{Kind: 200}}
	for i, road := range roads {
		var needs *lanes.NeedsLevelError
		if err := road(id(1), userAdd("early"), make(teller, 1)); !errors.As(err, &needs) || needs.Needs != nextlevel.Level {
			t.Errorf("road %d, a level that is not active: %v", i, err)
		}
		if err := road(id(1), later, make(teller, 1)); !errors.Is(err, level.ErrLater) {
			t.Errorf("road %d, a value of a later build: %v", i, err)
		}
	}
	c.publish(n, "one")
	c.await("the level", func(n *node) bool { return levelAt(n) == nextlevel.Level }, n)
	for i, road := range roads {
		if err := road(id(uint64(i)+1), userAdd("user"), make(teller, 1)); err != nil {
			t.Errorf("road %d, a level that is active: %v", i, err)
		}
	}
}
