package member

import (
	"cmp"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// ChangeOutcome is how a configuration change ended, as one member saw it.
type ChangeOutcome string

// The outcomes. A change of two entries whose second gave way is not over: the next leader writes another.
const (
	ChangeSettled ChangeOutcome = "settled" // whom it removed may be switched off
	ChangeAborted ChangeOutcome = "aborted" // somebody went back from the joint configuration
	ChangeUndone  ChangeOutcome = "undone"  // it gave way to the log of another leader
)

// ChangeCount is how many changes by a protocol ended in a way since this member started.
type ChangeCount struct {
	Protocol consensus.Protocol
	Outcome  ChangeOutcome
	Count    uint64
}

// changeCounters counts configuration changes where every member sees them: what ends well when it is applied, what is
// undone when the log is cut.
type changeCounters struct {
	mu     sync.Mutex
	counts []ChangeCount
	open   consensus.Protocol // of the change that was applied last and is not settled; zero if there is none
	recent []seenConfig       // the last that were in force, oldest first: only those can be undone
}

// seenConfig is a configuration that was in force once.
type seenConfig struct {
	id       consensus.ConfigID
	protocol consensus.Protocol
	joint    bool
	second   bool // ends the joint configuration before it
}

// maxRecentConfigs is more than a log can hold unsettled: one change, of two entries.
const maxRecentConfigs = 8

// configured notes which configuration the core counts by now.
func (c *changeCounters) configured(in *raft.ConfigInForce) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := seenConfig{id: in.ID, protocol: in.Protocol, joint: in.Config.IsJoint()}
	seen.id.Stage = 0
	if n := len(c.recent); n > 0 {
		last := &c.recent[n-1]
		seen.second = last.joint && !seen.joint && last.id.Index < seen.id.Index
	}
	if slices.ContainsFunc(c.recent, func(s seenConfig) bool { return s.id == seen.id }) {
		return // its second stage, or what was there before an undone one
	}
	if len(c.recent) == maxRecentConfigs {
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	c.recent = append(c.recent, seen)
}

// undone counts a change whose entry was cut off. One that was never in force waited to be applied.
func (c *changeCounters) undone(id consensus.ConfigID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.recent, func(s seenConfig) bool { return s.id == id })
	if at < 0 {
		c.add(consensus.ProtocolApply, ChangeUndone)
		return
	}
	seen := c.recent[at]
	c.recent = slices.Delete(c.recent, at, at+1)
	if !seen.second {
		c.add(seen.protocol, ChangeUndone)
	}
}

// applied counts what entries end.
func (c *changeCounters) applied(entries []consensus.Entry) {
	for i := range entries {
		if e := &entries[i]; e.Kind == consensus.EntryConfig || (e.Kind == consensus.EntryNoop && len(e.Payload) > 0) {
			c.end(e)
		}
	}
}

func (c *changeCounters) end(e *consensus.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == consensus.EntryNoop {
		if c.open != consensus.ProtocolAuto {
			c.add(c.open, ChangeSettled)
		}
		c.open = consensus.ProtocolAuto
		return
	}
	change, _, err := consensus.DecodeConfigChange(e.Payload)
	switch {
	case err != nil: // it changes nothing
	case change.Abort:
		c.open = consensus.ProtocolAuto
		c.add(change.Protocol, ChangeAborted)
	case change.Config.IsJoint() || change.Protocol == consensus.ProtocolApply:
		c.open = change.Protocol // another entry settles it
	default:
		c.open = consensus.ProtocolAuto
		c.add(change.Protocol, ChangeSettled)
	}
}

func (c *changeCounters) add(protocol consensus.Protocol, outcome ChangeOutcome) {
	for i := range c.counts {
		if n := &c.counts[i]; n.Protocol == protocol && n.Outcome == outcome {
			n.Count++
			return
		}
	}
	c.counts = append(c.counts, ChangeCount{Protocol: protocol, Outcome: outcome, Count: 1})
}

// ChangeCounts tells how the configuration changes ended that this member saw since it started, sorted by protocol and
// outcome. After a restart those that it applies again count again.
func (m *Member) ChangeCounts() []ChangeCount {
	m.changes.mu.Lock()
	defer m.changes.mu.Unlock()
	return slices.SortedFunc(slices.Values(m.changes.counts), func(a, b ChangeCount) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Outcome, b.Outcome))
	})
}

// StaleProposals counts the commands of this member that a leader refused because they were bound to a configuration
// that was no longer in force. They went out again at once.
func (m *Member) StaleProposals() uint64 {
	if m.hasStarted() {
		return m.node.Proposals().Stale()
	}
	return 0
}

// hasStarted reports whether Start has ended well.
func (m *Member) hasStarted() bool {
	select {
	case <-m.started:
		return true
	default:
		return false
	}
}
