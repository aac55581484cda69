package configs

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Cordon says who leaves leadership to others. A cordoned voter (consensus.Config.Cordoned) votes, replicates and serves like
// any other, and does not lead while another voter can. This is a preference: no safety rule depends on it, and a cordoned
// voter leads if no other voter can. On a cordoned member
//
//   - the wait before a campaign is longer than two campaign waits of the others, so that they campaign first,
//   - a transfer that a leader makes without need is ignored: it may have been sent before the member was cordoned,
//   - if it is elected nevertheless, it transfers leadership to a voter that is not cordoned once one has caught up.
//
// The same is asked for members whose applied state is wrong: they are spared.
//
// The longer wait does not change the promise to a leader on which its lease depends.
type Cordon struct {
	History *History
	Spared  []consensus.MemberID
}

// Self reports whether this member leaves leadership to others.
func (c *Cordon) Self() bool { return c.Covers(c.History.self) }

// Covers reports whether a member does.
func (c *Cordon) Covers(id consensus.MemberID) bool {
	return c.History.Config().LeavesLeadership(c.Spared, id)
}

// Any reports whether any voter does.
func (c *Cordon) Any() bool {
	return slices.ContainsFunc(c.History.Config().Voters, c.Covers)
}
