package member

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
)

// FastPath says when a member finds out by itself that what it proposed has committed. The zero value is auto.
type FastPath string

// The ways.
const (
	FastPathAuto   FastPath = "auto" // while the leader is so far away that it pays
	FastPathAlways FastPath = "always"
	FastPathNever  FastPath = "never"
)

// farAway is the round trip to the leader from which on counting pays: it saves the leader's round trip to the others, and
// costs each of them a small message for each of theirs. Within a rack those cost more than they save.
const farAway = time.Millisecond

// countsHolders reports whether this member is to count who holds what it proposes next.
func (m *Member) countsHolders() bool {
	leader := m.Leader()
	if leader == consensus.NoMember || leader == m.ID() {
		return false
	}
	distance, _ := m.transport.Distance(leader)
	return m.options.FastPath.pays(distance)
}

// pays reports whether to count with a leader so far away; zero means that nobody knows yet.
func (f FastPath) pays(distance time.Duration) bool {
	switch f {
	case FastPathAlways:
		return true
	case FastPathNever:
		return false
	}
	return distance >= farAway
}

// fewVoters is how many voters gain nothing by the fast path: what is counted comes as early with three.
const fewVoters = 3

// triesFast reports whether this member is to offer what it proposes next to all voters at once.
func (m *Member) triesFast() bool {
	if !m.countsHolders() {
		return false
	}
	return m.options.FastPath == FastPathAlways || m.voters.Load() > fewVoters
}

// Inferred returns how many proposals of this member it found committed before the leader told it, since it started.
func (m *Member) Inferred() uint64 { return m.inferred.Load() }

// FastCounts returns what the fast path did here since this member started.
func (m *Member) FastCounts() raft.FastCounts {
	if counts := m.fastCounts.Load(); counts != nil {
		return *counts
	}
	return raft.FastCounts{}
}

// fate tells the core what the state machine knows of a proposal.
func (m *Member) fate(id consensus.ProposalID) raft.Fate {
	machine, release := m.Machine()
	defer release()
	return FateOf(machine, id)
}

// FateOf asks a state machine.
func FateOf(machine *apply.Machine, id consensus.ProposalID) raft.Fate {
	switch done, retired := machine.Fate(id); {
	case done:
		return raft.FateDone
	case retired:
		return raft.FateRetired
	}
	return raft.FateUnknown
}

// send gives messages to the transport, but for the records of this member's own proposals, which it holds like any voter.
func (m *Member) send(messages []consensus.Message) {
	self, own := m.ID(), -1
	for i := range messages {
		if messages[i].To == self {
			own = i
			break
		}
	}
	if own < 0 {
		m.transport.Send(messages)
		return
	}
	others := make([]consensus.Message, 0, len(messages))
	for i := range messages {
		if messages[i].To == self {
			m.inbox.put(raft.Receive{Message: messages[i]})
		} else {
			others = append(others, messages[i])
		}
	}
	m.transport.Send(others)
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
			if answer, known := Answer(&waiting[i], machine); known {
				answers = append(answers, answer)
			}
		}
		release()
		if len(answers) > 0 {
			m.transport.Send(answers)
		}
	}
}

// Answer evaluates what a leader is to answer fast, on the state that is applied now, and returns the message to send; false
// if no result is known for certain.
func Answer(e *raft.Evaluation, machine *apply.Machine) (consensus.Message, bool) {
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
