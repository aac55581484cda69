package member

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/integrity"
	"github.com/quorate/quorate/internal/peercall"
)

// newIntegrity makes the comparison of members (package integrity) for this one.
func newIntegrity(m *Member) *integrity.Checker {
	return integrity.New(integrity.Options{
		Self: m.ID(), Stores: &m.stores, Pace: m.options.Integrity, Logger: m.logger,
		Ports: integrity.Ports{
			Leads:     func() bool { return m.leads() },
			Config:    func() consensus.Config { config, _ := m.config.withID(); return config },
			ReadIndex: m.ReadIndex,
			Propose:   m.Propose,
			Ask:       m.askIntegrity,
			Spare:     func(members []consensus.MemberID) { m.inbox.put(raft.Spare{Members: members}) },
		},
	})
}

func (m *Member) askIntegrity(
	ctx context.Context, id consensus.MemberID, kind integrity.Kind, q integrity.Question,
) (integrity.Answer, error) {
	return peercall.Ask(ctx, m.caller, id, integrityMethod(kind), q)
}

// IntegrityCounts returns how often members were compared here.
func (m *Member) IntegrityCounts() integrity.Counts { return m.integrity.Counts() }

// Corrupt reports whether this member must not answer from its state.
func (m *Member) Corrupt() bool { return m.integrity.Marked() }
