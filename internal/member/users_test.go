package member_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that users survive a restart, and that a member that was down gets them.
func TestMember_usersOutliveRestart(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	away := c.others(leader)[0]
	for _, n := range c.nodes {
		c.publish(n, n.id.String())
	}
	away.stop()
	secret := bytes.Repeat([]byte{7}, 32)
	for _, change := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: []byte("hash")}, {Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.Enable, Secret: secret},
	} {
		result, err := leader.Propose(c.ctx, &kv.Command{Auth: &change})
		if err = errors.Join(err, result.Err); err != nil {
			t.Fatal(err)
		}
	}
	away.start()
	has := func(n *node) bool {
		machine, release := n.Machine()
		defer release()
		return machine.Users().Enabled() && bytes.Equal(machine.Users().Secret(), secret) && machine.Users().HasRole("root", "root")
	}
	c.await("users", has, away)
	for _, n := range c.running() {
		n.stop()
	}
	for _, n := range c.nodes {
		n.start()
	}
	c.await("users", has, c.nodes...)
}
