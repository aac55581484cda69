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

// The outcomes. A change of two entries whose second entry was undone is not over: the next leader writes another one.
const (
	Settled Outcome = "settled" // committed and known to enough members: the removed members may be switched off
	Aborted Outcome = "aborted" // a request aborted the joint configuration
	Undone  Outcome = "undone"  // its entry was truncated by the log of another leader
)

// Count is how many changes of a protocol had an outcome since this member started.
type Count struct {
	Protocol consensus.Protocol
	Outcome  Outcome
	Count    uint64
}

// Counter counts configuration changes at the places where every member sees them: outcomes other than Undone when their
// entries are applied, Undone when the log is truncated.
type Counter struct {
	mu     sync.Mutex
	counts []Count
	open   consensus.Protocol // protocol of the last applied change that is not settled; zero if there is none
	recent []seenConfig       // the last ones in force, oldest first: only those can be undone
}

// seenConfig is a configuration that was in force.
type seenConfig struct {
	id       consensus.ConfigID
	protocol consensus.Protocol
	joint    bool
	second   bool // ends the joint configuration before it
}

// maxRecentConfigs is more than a log can hold unsettled: those of one change, which has two entries.
const maxRecentConfigs = 8

// Configured notes a configuration that came into force.
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
		return // its second stage, or the configuration before an undone one
	}
	if len(c.recent) == maxRecentConfigs {
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	c.recent = append(c.recent, seen)
}

// Undone counts a change whose entry was truncated. An entry that was never in force is one that members use only once it is
// applied.
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

// Applied counts the changes that the entries end.
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
	change, err := consensus.DecodeConfigChange(e.Payload)
	switch {
	case err != nil: // the entry changes nothing
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

// Counts returns the outcomes of the changes that this member saw since it started, sorted by protocol and outcome. After a
// restart, entries that are applied again count again.
func (c *Counter) Counts() []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(slices.Values(c.counts), func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Outcome, b.Outcome))
	})
}
