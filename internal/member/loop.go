package member

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/offers"
)

// loop owns the node: it takes everything that waits, steps the core once, and publishes what others read.
func (m *Member) loop(ctx context.Context) error {
	ticker := time.NewTicker(m.options.TickInterval)
	defer ticker.Stop()
	passed := ticks{begun: m.options.Clock.Now(), interval: m.options.TickInterval, most: 1}
	if m.options.Raft.LeaderLease {
		passed.most = int64(4 * m.options.Raft.ElectionTicks)
	}
	later := time.NewTimer(m.options.TickInterval) // for offers that are not due yet
	defer later.Stop()
	for {
		select {
		case <-m.inbox.signal:
		case <-ticker.C:
		case <-later.C:
		case <-ctx.Done():
			return nil
		}
		m.loopTask.Begin()
		inputs := m.inbox.take()
		now := m.options.Clock.Now()
		if due := passed.due(now); len(due) > 0 && !m.epochs.Update(m.Leader() != consensus.NoMember).Mute() {
			inputs = append(due, inputs...)
			counts := m.node.Replica().Counts()
			m.coreCounts.Store(&counts)
		}
		m.node.Step(now, inputs...)
		if due, waits := m.node.Next(); waits {
			later.Reset(due.Sub(m.options.Clock.Now()))
		}
		if m.node.Waiting() {
			m.inbox.wake()
		}
		m.publish()
	}
}

// ticks counts the ticks that the clock says have passed. They come before whatever else waits: a member that was
// paused must know that time went on, or its leader lease would outlive the promises it rests on. Without such a lease
// one tick for the whole pause is better: what waits may show that nothing has changed meanwhile.
type ticks struct {
	begun    time.Time
	interval time.Duration
	counted  int64
	most     int64 // at once
}

func (t *ticks) due(now time.Time) []raft.Input {
	passed := int64(now.Sub(t.begun) / t.interval)
	n := min(passed-t.counted, t.most)
	if n <= 0 {
		return nil
	}
	t.counted = passed
	inputs := make([]raft.Input, n)
	for i := range inputs {
		inputs[i] = raft.Tick{}
	}
	return inputs
}

// publish makes the core's state readable by other goroutines.
func (m *Member) publish() {
	replica := m.node.Replica()
	m.inferred.Store(replica.Inferred())
	m.knownLeader.follow(replica.Leader(), replica.Term(), m.options.Clock.Now)
	m.clusterBoard.publish(replica, m.options.FastPath != offers.Never)
	m.status.answer(replica)
}

// Status is a copy of what the core knows now. After Stop it is the zero value. If the loop hangs it is the last copy
// that anybody got.
func (m *Member) Status() raft.Status { return m.status.ask(m.stopping, m.inbox.wake) }

// Stalled tells whether the member's loop, its log or its state machine has been at one piece of work for longer than
// limit, and which. The loop always has work: it ticks. The installation of a snapshot, which may rightly take long,
// does not count. It never waits for any of them.
func (m *Member) Stalled(limit time.Duration) error { return m.dog.Stalled(limit) }

// ports ties the node to the member's goroutines.
func (m *Member) ports() node.Ports {
	return node.Ports{
		Send:         m.send,
		Persist:      m.disk.queue.put,
		Apply:        func(entries []consensus.Entry) { m.applier.queue.put(applyRequest{entries: entries}) },
		Install:      func(meta consensus.SnapshotMeta) { m.applier.queue.put(applyRequest{install: &meta}) },
		SendSnapshot: m.sendSnapshot,
		StopSnapshot: m.sender.Stop,
		Configure:    m.configure,
		Observe:      m.observe,
		Distance:     m.peers.transport.Distance,
		Taken:        m.Taken,
	}
}

// configure opens and closes peers as the configuration in force says.
func (m *Member) configure(inForce raft.ConfigInForce) {
	config := inForce.Config
	config.Members = dialled(config.Members)
	m.peers.transport.Configure(&config)
	m.members.changes.Configured(&inForce)
	self, _ := inForce.Config.Member(m.ID())
	m.learner.Store(inForce.Config.IsLearner(m.ID()) && !self.Promote)
	m.logger.Info("configuration in force", "config", inForce.ID.String(), "voters", len(inForce.Config.Voters),
		"learners", len(inForce.Config.Learners), "joint", inForce.Config.IsJoint())
}

// observe writes events to the log, and takes note of some.
func (m *Member) observe(events []raft.Event) {
	for _, event := range events {
		switch e := event.(type) {
		case raft.BecameLeader:
			m.applier.queue.put(applyRequest{lead: &leadership{leads: true, term: e.Term}})
		case raft.BecameFollower:
			m.applier.queue.put(applyRequest{lead: &leadership{term: e.Term}})
		case raft.Denied:
			m.distrust(e)
		case raft.ConfigUndone:
			m.members.changes.Undone(e.ID)
		case raft.Removed:
			m.background(m.leave)
		}
		if _, conflict := event.(raft.LogConflict); conflict {
			m.logger.Error(event.String())
			continue
		}
		m.logger.Info(event.String())
	}
}

func (m *Member) electionTimeout() time.Duration {
	return time.Duration(m.options.Raft.ElectionTicks) * m.options.TickInterval
}
