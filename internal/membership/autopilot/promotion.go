package autopilot

import (
	"errors"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/membership"
)

// AwaitsPromotion reports whether a learner is to vote once it has caught up.
func AwaitsPromotion(config *consensus.Config) bool {
	return slices.ContainsFunc(config.Members, func(m consensus.Member) bool { return awaitsPromotion(config, &m) })
}

func awaitsPromotion(config *consensus.Config, member *consensus.Member) bool {
	return member.Promote && config.IsLearner(member.ID)
}

// Promotable lists the learners of config that were added to vote and have caught up, as the leader sees it. Learners that an
// unfinished job gives their role are left to it. The leader's core refuses the promotion of one that has not caught up.
func Promotable(config *consensus.Config, leader *raft.Status, rows []Row) []consensus.MemberID {
	var ready []consensus.MemberID
	for _, p := range leader.Progress {
		member, ok := config.Member(p.ID)
		near := p.RecentActive && p.Match > 0 && p.Match+raft.CaughtUpEntries >= leader.LastIndex
		if ok && awaitsPromotion(config, &member) && near && !claimed(rows, &member) {
			ready = append(ready, p.ID)
		}
	}
	return ready
}

// FirstAccepted tries one after the other until one is not refused, and returns it and what became of it: what forbids one
// member need not forbid the next.
func FirstAccepted(
	ids []consensus.MemberID, try func(consensus.MemberID) error,
) (consensus.MemberID, error) {
	for _, id := range ids {
		err := try(id)
		var refused *membership.RefusedError
		if !errors.As(err, &refused) {
			return id, err
		}
	}
	return consensus.NoMember, nil
}

// claimed reports whether an unfinished job gives a learner its role, as a newcomer that it found here or by its id. Were the
// learner a voter before the job's turn, it could not take another's place any more. If the job fails, it is promoted.
func claimed(rows []Row, member *consensus.Member) bool {
	return slices.ContainsFunc(rows, func(row Row) bool {
		adds := func(n membership.Newcomer) bool { return membership.SameURLs(n.PeerURLs, member.PeerURLs) }
		return !row.State.Ended() && (slices.ContainsFunc(row.Spec.Add, adds) ||
			slices.Contains(row.Spec.Promote, member.ID) || slices.Contains(row.Spec.Remove, member.ID))
	})
}
