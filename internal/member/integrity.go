package member

import (
	"context"
	"encoding/json"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/integrity"
)

// newIntegrity makes the comparison of members (package integrity) for this one.
func newIntegrity(m *Member) *integrity.Checker {
	return integrity.New(integrity.Options{
		Self: m.ID(), Stores: &m.stores, Pace: m.options.Integrity, Logger: m.logger,
		Ports: integrity.Ports{
			Leads:     func() bool { return m.Leader() == m.ID() },
			Config:    func() consensus.Config { config, _ := m.configApplied(); return config },
			ReadIndex: m.ReadIndex,
			Propose:   m.Propose,
			Ask:       m.askIntegrity,
			Spare:     func(members []consensus.MemberID) { m.inbox.put(raft.Spare{Members: members}) },
		},
	})
}

func (m *Member) askIntegrity(
	ctx context.Context, id consensus.MemberID, kind integrity.Kind, q integrity.Question,
) (answer integrity.Answer, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return answer, err
	}
	raw, err := m.askLeader(ctx, id, string(kind), body)
	if err != nil {
		return answer, err
	}
	return openReply[integrity.Answer](raw)
}

// integrityCall answers the questions of package integrity; nil for other methods.
func (m *Member) integrityCall(method string) func(context.Context, integrity.Question) integrity.Answer {
	kind := integrity.Kind(method)
	if kind != integrity.Chain && kind != integrity.Contents {
		return nil
	}
	return func(ctx context.Context, q integrity.Question) integrity.Answer {
		return m.integrity.Answer(ctx, kind, q)
	}
}

// IntegrityCounts returns how often members were compared here.
func (m *Member) IntegrityCounts() integrity.Counts { return m.integrity.Counts() }

// Corrupt reports whether this member must not answer from its state.
func (m *Member) Corrupt() bool { return m.integrity.Marked() }
