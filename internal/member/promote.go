package member

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

const (
	// promoteScanInterval is how often a leader looks for learners that wait to be voters.
	promoteScanInterval = 100 * time.Millisecond
	// promotePatience bounds one attempt; the next scan tries again.
	promotePatience = 5 * time.Second
	// promoteLag is how many entries such a learner may be behind: about what one round trip brings.
	promoteLag = 1000
)

// promoteLearners is the goroutine that, on the leader, makes voters of members that were added as such and have
// caught up. It asks like everybody else, so that a refusal costs nothing and a new leader simply goes on.
func (m *Member) promoteLearners() error {
	known := orphans{}
	return lookEvery(m.stopping, promoteScanInterval, func() {
		if m.Leader() == m.ID() {
			m.bindMet()
			m.promoteReady()
			m.retireOrphans(known)
		}
	})
}

func (m *Member) promoteReady() {
	machine, release := m.Machine()
	config, _ := machine.Config()
	release()
	waits := func(member consensus.Member) bool { return member.Promote && config.IsLearner(member.ID) }
	if !slices.ContainsFunc(config.Members, waits) {
		return
	}
	status, stored := m.Status(), m.jobRows()
	var ready []consensus.MemberID
	for _, p := range status.Progress {
		member, ok := config.Member(p.ID)
		near := p.RecentActive && p.Match > 0 && p.Match+promoteLag >= status.LastIndex
		if ok && waits(member) && near && !spokenFor(stored, &member) {
			ready = append(ready, p.ID)
		}
	}
	promoted, err := firstAccepted(ready, func(id consensus.MemberID) error {
		ctx, cancel := context.WithTimeout(m.stopping, promotePatience)
		defer cancel()
		_, err := m.ChangeConfig(ctx, consensus.ChangeOne(consensus.ChangePromote, consensus.Member{ID: id}))
		return err
	})
	switch {
	case promoted == consensus.NoMember:
	case err == nil:
		m.logger.Info("promoted a caught-up member", "peer", promoted.String())
	case m.stopping.Err() == nil:
		m.logger.Warn("could not promote a member yet", "peer", promoted.String(), "err", err)
	}
}

// firstAccepted tries one after the other until one is not refused, and returns it and what became of it: what forbids one
// member need not forbid the next.
func firstAccepted(
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

// spokenFor reports whether an unfinished job gives a learner its role, as a newcomer that it found here or by its id. Were
// the learner a voter before the job's turn, it could not take anybody's place any more. If the job fails, it is promoted.
func spokenFor(stored []autopilot.Row, member *consensus.Member) bool {
	return slices.ContainsFunc(stored, func(job autopilot.Row) bool {
		adds := func(n membership.Newcomer) bool { return membership.SameURLs(n.PeerURLs, member.PeerURLs) }
		return !job.State.Ended() && (slices.ContainsFunc(job.Spec.Add, adds) ||
			slices.Contains(job.Spec.Promote, member.ID) || slices.Contains(job.Spec.Remove, member.ID))
	})
}
