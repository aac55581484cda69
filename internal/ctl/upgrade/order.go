package upgrade

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
)

// Order returns the members in the order in which a new build is started on them: learners do not vote, and come first; then
// followers, those of other zones than the leader's before those of its own; the leader comes last.
func Order(cluster *quoratepb.Cluster) []*quoratepb.Member {
	members := slices.Clone(cluster.GetMembers())
	leaderZone := ""
	for _, m := range members {
		if m.GetLeader() {
			leaderZone = m.GetZone()
		}
	}
	slices.SortStableFunc(members, func(a, b *quoratepb.Member) int {
		return cmp.Compare(turn(a, leaderZone), turn(b, leaderZone))
	})
	return members
}

// turn orders members: the lower comes first.
func turn(m *quoratepb.Member, leaderZone string) int {
	switch {
	case m.GetLeader():
		return 3
	case m.GetRole() == quoratepb.Role_ROLE_LEARNER, m.GetRole() == quoratepb.Role_ROLE_JOINING:
		return 0
	case m.GetZone() != leaderZone:
		return 1
	}
	return 2
}
