package member

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/node"
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

// lookAtFastPath decides, now and then, whether and how this member offers what it proposes next to all voters at once.
func (m *Member) lookAtFastPath() {
	all := m.node.Replica().Counts()
	m.coreCounts.Store(&all)
	counts := &all.Fast
	mode := m.pace.look(m.options.Clock.Now(), outcomes{
		tried: counts.Tried, agreed: counts.Won + counts.Overtaken, disagreed: counts.Disagreed,
	})
	m.ahead = 0
	always := m.options.FastPath == FastPathAlways
	voters := m.Footing().Voters
	if len(voters) == 0 || !m.countsHolders() || ((mode == paceRest || len(voters) <= fewVoters) && !always) {
		m.node.TryFast(false)
		return
	}
	m.node.TryFast(true)
	if mode == paceStamped {
		m.ahead = m.stampAhead(voters)
	}
}

// stampAhead returns how far ahead the proposals of this member must be stamped, zero if nobody knows.
func (m *Member) stampAhead(voters []consensus.MemberID) time.Duration {
	leader := m.Leader()
	toLeader, known := m.transport.Distance(leader)
	if !known {
		return 0
	}
	var others []time.Duration
	toBusy := time.Duration(0)
	for _, id := range voters {
		distance, known := m.transport.Distance(id)
		if !known || id == m.ID() || id == leader {
			continue
		}
		others = append(others, distance)
		if m.holder.busy(id) {
			toBusy = max(toBusy, distance)
		}
	}
	return stampAhead(max(toLeader, toBusy), others, quorum.Super(len(voters)))
}

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
func (m *Member) fate(id consensus.ProposalID) raft.Fate { return node.FateOf(m.stores.Latest(), id) }

// send gives messages to the transport, but for the records of this member's own proposals, which it holds like any voter.
func (m *Member) send(messages []consensus.Message) {
	m.stamp(messages)
	own := slices.IndexFunc(messages, func(message consensus.Message) bool { return message.To == m.ID() })
	if own < 0 {
		m.deliver(messages)
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
	m.deliver(others)
}

// stamp marks proposals of the fast path with when they are due. Stamps of one member grow.
func (m *Member) stamp(messages []consensus.Message) {
	if m.ahead == 0 {
		return
	}
	at := uint64(0)
	for i := range messages {
		message := &messages[i]
		if message.Kind != consensus.MsgRecord && message.Kind != consensus.MsgFastPropose {
			continue
		}
		if at == 0 {
			at = max(m.lastStamp+1, uint64(m.options.Clock.Now().Add(m.ahead).UnixNano()))
			m.lastStamp = at
		}
		message.Due = at
	}
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
			m.deliver(answers)
		}
	}
}
