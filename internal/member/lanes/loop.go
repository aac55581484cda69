package lanes

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/node"
)

// loop is the lane that owns the node, and the state that it publishes for other goroutines.
type loop struct {
	node   *node.Node // set by Start
	ticks  node.Ticks
	ticked time.Time // time of the last tick

	inferred atomic.Uint64
	late     atomic.Uint64
	counts   atomic.Pointer[raft.Counts]
}

// lateBeats is after how many heartbeat intervals without a tick a leader was late.
const lateBeats = 3

// Take returns the inputs of the next step: the ticks that are due, unless the member is mute, and all queued inputs. The slice
// is valid until the next call.
func (l *Lanes) Take() []raft.Input {
	inputs := l.inbox.take()
	now := l.options.Clock.Now()
	due := l.loop.ticks.Due(now)
	if len(due) == 0 || l.host.Mute(l.leader.Leader() != consensus.NoMember) {
		return inputs
	}
	if now.Sub(l.loop.ticked) > lateBeats*l.options.HeartbeatInterval && l.leader.Leads() {
		l.loop.late.Add(1)
	}
	l.loop.ticked = now
	counts := l.loop.node.Replica().Counts()
	l.loop.counts.Store(&counts)
	return append(due, inputs...)
}

// Step steps the node once with the result of Take, and publishes the new state. Another step is due at next, if later, and at
// once, if more.
func (l *Lanes) Step(inputs []raft.Input) (next time.Time, later, more bool) {
	l.loop.node.Step(l.options.Clock.Now(), inputs...)
	l.published()
	next, later = l.loop.node.Next()
	return next, later, l.loop.node.Waiting()
}

// published publishes the core's state to other goroutines.
func (l *Lanes) published() {
	replica := l.loop.node.Replica()
	l.loop.inferred.Store(replica.Inferred())
	l.leader.Follow(replica.Leader(), replica.Term(), l.options.Clock.Now)
	l.host.Stepped(replica)
}

// Inferred is how many commits this member has inferred, as of the last step.
func (l *Lanes) Inferred() uint64 { return l.loop.inferred.Load() }

// Late counts gaps between ticks of more than lateBeats heartbeat intervals while this member led.
func (l *Lanes) Late() uint64 { return l.loop.late.Load() }

// CoreCounts returns the core's counters as of the last tick.
func (l *Lanes) CoreCounts() raft.Counts {
	if counts := l.loop.counts.Load(); counts != nil {
		return *counts
	}
	return raft.Counts{}
}
