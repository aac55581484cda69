package member

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/membership"
)

// bindPatience bounds one attempt to bind members; the next scan tries again.
const bindPatience = 5 * time.Second

// bindMet binds, on the leader, those members to their data directories that have been met and are not bound yet: newcomers,
// and founding members that came late. Until then nothing that they say is counted.
func (m *Member) bindMet() {
	config := m.config.now()
	steps := identity.Bindings(&config, m.peers.transport.Met(), m.ID(), m.options.Raft.Storage)
	if len(steps) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(m.stopping, bindPatience)
	defer cancel()
	_, err := m.ChangeConfig(ctx, consensus.ChangeRequest{Steps: steps, Protocol: consensus.ProtocolSingle})
	var refused *membership.RefusedError
	switch {
	case err == nil:
		for _, step := range steps {
			m.logger.Info("bound a member to its data directory", "peer", step.Member.ID.String(),
				"storage", step.Member.Storage.String())
		}
	case !errors.As(err, &refused) && m.stopping.Err() == nil:
		m.logger.Warn("could not bind a member to its data directory yet", "err", err)
	}
}

// distrust shuts out a member whose disk was rolled back: it would acknowledge, and vote, without what it has forgotten.
func (m *Member) distrust(e raft.Denied) {
	m.logger.Error("a member has lost what it acknowledged: its data directory is older than it was, and counts no more",
		"peer", e.Member.String(), "acknowledged", uint64(e.Match), "holds", uint64(e.Claimed),
		"do",
		"move its data directory aside, start it with an empty one, and run `quorate member reset "+m.config.nameOf(e.Member)+"`")
	m.background(func() {
		if err := m.peers.transport.Distrust(e.Member); err != nil {
			m.fail(err)
		}
	})
}

// troubleStates are how member list shows a member that is refused for its data directory.
var troubleStates = map[identity.Reason]string{
	identity.LostDisk:   membership.LostItsDisk,
	identity.RolledBack: membership.RolledBack,
}

// trouble says in two words why a member is refused here; empty: it is not.
func (m *Member) trouble(id consensus.MemberID) string {
	trouble, found := m.peers.transport.Trouble(id)
	if !found {
		return ""
	}
	return troubleStates[trouble.Reason]
}

// Refused takes note that a peer has refused this member for good. It is the transport's handler.
func (m *Member) Refused(by consensus.MemberID, refusal *identity.Refusal) {
	m.refusedOnce.Do(func() {
		lost := &datadir.LostError{
			Reason: refusal.Reason, Text: "member " + by.String() + " refused this member: " + refusal.Text,
		}
		// Of two processes on one directory the other may be the copy: what was cloned is not useless for ever.
		if refusal.Reason != identity.Cloned {
			if err := m.data.MarkLost(lost); err != nil {
				m.logger.Error("could not mark the data directory", "err", err)
			}
		}
		m.fail(lost)
	})
}
