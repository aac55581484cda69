package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// A cordoned voter (consensus.Config.Cordoned) votes, replicates and serves like any other, and does not lead while another
// voter can. This is a preference: no safety rule depends on it, and a cordoned voter leads if no other voter can. On a
// cordoned member
//
//   - the wait before a campaign is longer than two campaign waits of the others, so that they campaign first,
//   - a transfer that a leader makes without need is ignored: it may have been sent before the member was cordoned,
//   - if it is elected nevertheless, it transfers leadership to a voter that is not cordoned once one has caught up.
//
// Spared members (input Spare), whose applied state is wrong, leave leadership to others in the same way.
//
// The longer wait does not change the promise to a leader on which its lease depends.

// cordoned reports whether a member leaves leadership to others.
func (r *Replica) cordoned(id consensus.MemberID) bool {
	return r.configs.Config().LeavesLeadership(r.spared, id) && !r.opts.Dropped[rules.LeadWhenCordoned]
}

// selfCordoned reports whether this member leaves leadership to others.
func (r *Replica) selfCordoned() bool { return r.cordoned(r.opts.ID) }

// anyCordoned reports whether any voter leaves leadership to others.
func (r *Replica) anyCordoned() bool {
	return slices.ContainsFunc(r.configs.Config().Voters, r.cordoned)
}
