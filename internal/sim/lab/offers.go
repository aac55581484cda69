package lab

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/node"
)

// The shell's part of the fast path (docs/fast-path.md): package node asks the state machine whether a write is decided, and
// what a leader's answer is, which leaves once its disk has the entry.

var _ node.Machine = (*store)(nil)

// Decided implements node.Machine.
func (s *store) Decided(id consensus.ProposalID) (done, retired bool) {
	return s.decided(id.Sequence), false
}

// SessionOpen implements node.Machine: sessions are not in the log here.
func (s *store) SessionOpen(consensus.SessionID) bool { return true }

// Evaluate implements node.Machine. A write that was applied meanwhile has ended.
func (s *store) Evaluate(e *entry) (kv.Result, bool) {
	return kv.Result{Revision: kv.Revision(e.ExactRevision)}, !s.decided(e.Proposal.Sequence)
}

func (m *member) stateOf(id consensus.ProposalID) fast.ProposalState {
	return node.StateOf(&m.store, id)
}

// answer sends what a leader says of proposals that it took at an exact revision.
func (m *member) answer(evaluations []raft.Evaluation) {
	for i := range evaluations {
		if answer, known := node.Answer(&evaluations[i], &m.store); known {
			m.w.net.sendAll([]message{answer})
		}
	}
}
