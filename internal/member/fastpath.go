package member

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/node"
)

// Inferred returns how many proposals of this member it found committed before the leader told it, since it started.
func (m *Member) Inferred() uint64 { return m.inferred.Load() }

// CoreCounts returns what the core counted since this member started, about a second late.
func (m *Member) CoreCounts() raft.Counts {
	if counts := m.coreCounts.Load(); counts != nil {
		return *counts
	}
	return raft.Counts{}
}

// FastCounts returns what the fast path did here since this member started.
func (m *Member) FastCounts() raft.FastCounts { return m.CoreCounts().Fast }

// fate tells the core what the state machine knows of a proposal. While a snapshot replaces it, what the one before knew is
// true, and the core looks again when the new one is there.
func (m *Member) fate(id consensus.ProposalID) fast.Fate { return node.FateOf(m.stores.Latest(), id) }

// send gives messages to the transport, but for the records of this member's own proposals, which it holds like any voter.
func (m *Member) send(messages []consensus.Message) {
	own := slices.IndexFunc(messages, func(message consensus.Message) bool { return message.To == m.ID() })
	if own < 0 {
		m.Deliver(messages)
		return
	}
	others := make([]consensus.Message, 0, len(messages))
	for i := range messages {
		if messages[i].To == m.ID() {
			m.Receive(messages[i : i+1 : i+1])
		} else {
			others = append(others, messages[i])
		}
	}
	m.Deliver(others)
}

// answerFast is the goroutine that evaluates what this member, as a leader, answers before it has committed.
func (m *Member) answerFast() error {
	var spare []raft.Evaluation
	for {
		select {
		case <-m.evaluations.signal:
		case <-m.stopping.Done():
			return nil
		}
		waiting := m.evaluations.take(spare)
		spare = waiting
		var answers []consensus.Message
		machine, release := m.Machine()
		for i := range waiting {
			if m.Corrupt() {
				break
			}
			if answer, known := node.Answer(&waiting[i], machine); known {
				answers = append(answers, answer)
			}
		}
		release()
		if len(answers) > 0 {
			m.Deliver(answers)
		}
	}
}
