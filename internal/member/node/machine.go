package node

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
)

// Machine is what the core asks of the applied state.
type Machine interface {
	// Decided says whether a proposal was applied, or its session has ended.
	Decided(id consensus.ProposalID) (done, retired bool)
	SessionOpen(id consensus.SessionID) bool
	// Evaluate returns what an entry will give that is not applied yet; false if that is not certain.
	Evaluate(entry *consensus.Entry) (kv.Result, bool)
}

// StateOf asks a state machine.
func StateOf(machine Machine, id consensus.ProposalID) fast.ProposalState {
	switch done, retired := machine.Decided(id); {
	case done:
		return fast.ProposalApplied
	case retired:
		return fast.ProposalRetired
	case !id.IsZero() && !machine.SessionOpen(id.Session):
		return fast.ProposalNoSession
	}
	return fast.ProposalUnknown
}

// Answer evaluates what a leader is to answer fast, on the state that is applied now, and returns the message to send; false
// if no result is known for certain.
func Answer(e *raft.Evaluation, machine Machine) (consensus.Message, bool) {
	m := e.Message
	m.Verdicts = m.Verdicts[:0:0]
	for i := range e.Entries {
		result, known := machine.Evaluate(&e.Entries[i])
		if !known {
			continue
		}
		verdict := e.Message.Verdicts[i]
		verdict.Reply = result.Append(nil)
		m.Verdicts = append(m.Verdicts, verdict)
	}
	return m, len(m.Verdicts) > 0
}
