package changecount

import (
	"cmp"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Outcome is how a configuration change ended, as one member saw it.
type Outcome string

// The outcomes. A change of two entries whose second gave way is not over: the next leader writes another.
const (
	Settled Outcome = "settled" // whom it removed may be switched off
	Aborted Outcome = "aborted" // somebody went back from the joint configuration
	Undone  Outcome = "undone"  // it gave way to the log of another leader
)

// Count is how many changes by a protocol ended in a way since this member started.
type Count struct {
	Protocol consensus.Protocol
	Outcome  Outcome
	Count    uint64
}

// Counter counts configuration changes where every member sees them: what ends well when it is applied, what is
// Undone when the log is cut.
type Counter struct {
	mu     sync.Mutex
	counts []Count
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

// Configured notes which configuration the core counts by now.
func (c *Counter) Configured(in *raft.ConfigInForce) {
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

// Undone counts a change whose entry was cut off. One that was never in force waited to be applied.
func (c *Counter) Undone(id consensus.ConfigID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.recent, func(s seenConfig) bool { return s.id == id })
	if at < 0 {
		c.add(consensus.ProtocolApply, Undone)
		return
	}
	seen := c.recent[at]
	c.recent = slices.Delete(c.recent, at, at+1)
	if !seen.second {
		c.add(seen.protocol, Undone)
	}
}

// Applied counts what entries end.
func (c *Counter) Applied(entries []consensus.Entry) {
	for i := range entries {
		if e := &entries[i]; e.Kind == consensus.EntryConfig || (e.Kind == consensus.EntryNoop && len(e.Payload) > 0) {
			c.end(e)
		}
	}
}

func (c *Counter) end(e *consensus.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == consensus.EntryNoop {
		if c.open != consensus.ProtocolAuto {
			c.add(c.open, Settled)
		}
		c.open = consensus.ProtocolAuto
		return
	}
	change, _, err := consensus.DecodeConfigChange(e.Payload)
	switch {
	case err != nil: // it changes nothing
	case change.Abort:
		c.open = consensus.ProtocolAuto
		c.add(change.Protocol, Aborted)
	case change.Config.IsJoint() || change.Protocol == consensus.ProtocolApply:
		c.open = change.Protocol // another entry settles it
	default:
		c.open = consensus.ProtocolAuto
		c.add(change.Protocol, Settled)
	}
}

func (c *Counter) add(protocol consensus.Protocol, outcome Outcome) {
	for i := range c.counts {
		if n := &c.counts[i]; n.Protocol == protocol && n.Outcome == outcome {
			n.Count++
			return
		}
	}
	c.counts = append(c.counts, Count{Protocol: protocol, Outcome: outcome, Count: 1})
}

// Counts tells how the configuration changes ended that this member saw since it started, sorted by protocol and
// outcome. After a restart those that it applies again count again.
func (c *Counter) Counts() []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(slices.Values(c.counts), func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Outcome, b.Outcome))
	})
}
