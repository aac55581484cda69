package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
)

// A cordoned voter (consensus.Config.Cordoned) votes, replicates and serves like any other, and does not lead while another
// voter can. This is a preference: no safety rule depends on it, and a cordoned voter leads if no other voter can. On a
// cordoned member
//
//   - the wait before a campaign is longer than two campaign waits of the others, so that they campaign first,
//   - a transfer that a leader makes without need is ignored: it may have been sent before the member was cordoned,
//   - if it is elected nevertheless, it transfers leadership to a voter that is not cordoned once one has caught up.
//
// The same is asked for members whose applied state is wrong (input Spare).
//
// The longer wait does not change the promise to a leader on which its lease depends.

// A cordoned voter waits for cordonWait to cordonWait+1 election timeouts before it campaigns.
const cordonWait = 3

// cordon says who leaves leadership to others.
type cordon struct {
	opts    *Options
	configs *configs.History
	spared  []consensus.MemberID // by input Spare
}

// self reports whether this member leaves leadership to others.
func (c *cordon) self() bool { return c.covers(c.opts.ID) }

func (c *cordon) covers(id consensus.MemberID) bool {
	return c.configs.Config().LeavesLeadership(c.spared, id)
}

// any reports whether any voter is cordoned.
func (c *cordon) any() bool {
	return slices.ContainsFunc(c.configs.Config().Voters, c.covers)
}
