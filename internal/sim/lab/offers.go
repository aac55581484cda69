package lab

import (
	"slices"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// The shell's part of the fast path (docs/fast-path.md): the state machine says what a write touches and whether it
// is decided, and a leader's answer leaves once its disk has the entry. Each write touches a key of its own.

func footprintOf(payload []byte) consensus.Footprint {
	return consensus.Footprint{Keys: []keyrange.Range{keyrange.From(payload, nil)}}
}

func (m *member) stateOf(id consensus.ProposalID) fast.ProposalState {
	if m.store.decided(id.Sequence) {
		return fast.ProposalApplied
	}
	return fast.ProposalUnknown
}

// answer sends what a leader says of proposals that it took at an exact revision. One that was applied meanwhile has ended.
func (m *member) answer(evaluations []raft.Evaluation) {
	for i := range evaluations {
		msg := evaluations[i].Message
		msg.Verdicts = slices.DeleteFunc(slices.Clone(msg.Verdicts), func(v consensus.Verdict) bool {
			return m.store.decided(v.Proposal.Sequence)
		})
		if len(msg.Verdicts) > 0 {
			m.w.net.send(msg)
		}
	}
}
