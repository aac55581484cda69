package member

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/storage/wal"
)

// loop owns the node: it takes everything that waits, steps the core once, and publishes what others read.
func (m *Member) loop() error {
	ticker := time.NewTicker(m.options.TickInterval)
	defer ticker.Stop()
	passed := ticks{begun: m.options.Clock.Now(), interval: m.options.TickInterval, most: 1}
	if m.options.Raft.LeaderLease {
		passed.most = int64(4 * m.options.Raft.ElectionTicks)
	}
	for {
		select {
		case <-m.inbox.signal:
		case <-ticker.C:
		case <-m.stopping.Done():
			return nil
		}
		m.loopTask.Begin()
		inputs := m.inbox.take()
		m.offers.taken(inputs)
		if due := passed.due(m.options.Clock.Now()); len(due) > 0 && !m.epochs.Update(m.Leader() != consensus.NoMember).Mute() {
			inputs = append(due, inputs...)
			m.node.CountHolders(m.countsHolders())
			m.lookAtFastPath()
		}
		m.node.Step(inputs...)
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
	m.term.Store(uint64(replica.Term()))
	m.inferred.Store(replica.Inferred())
	m.follow(replica.Leader())
	m.publishFooting(replica)
	for _, answer := range m.asked.take(nil) {
		status := replica.Status()
		m.known.Store(&status)
		answer <- status
	}
}

// statusTimeout is how long Status waits for the loop before it answers with what was last known, and maxAsked how many
// may wait for it.
const (
	statusTimeout = 2 * time.Second
	maxAsked      = 1024
)

// statusQueue holds those who wait for a copy of the core's state.
type statusQueue = queue[chan<- raft.Status]

// Status is a copy of what the core knows now. After Stop it is the zero value. If the loop hangs it is the last copy
// that anybody got: who looks at a member that hangs must not hang, too.
func (m *Member) Status() raft.Status {
	if m.asked.len() >= maxAsked {
		return m.lastStatus()
	}
	patience := timers.get(statusTimeout)
	defer timers.put(patience)
	answer := make(chan raft.Status, 1)
	m.asked.put(answer)
	m.inbox.wake()
	select {
	case status := <-answer:
		return status
	case <-patience.C:
		return m.lastStatus()
	case <-m.stopping.Done():
		return raft.Status{}
	}
}

func (m *Member) lastStatus() raft.Status {
	if known := m.known.Load(); known != nil {
		return *known
	}
	return raft.Status{}
}

// Stalled tells whether the member's loop, its log or its state machine has been at one piece of work for longer than
// limit, and which. The loop always has work: it ticks. The installation of a snapshot, which may rightly take long,
// does not count. It never waits for any of them.
func (m *Member) Stalled(limit time.Duration) error { return m.dog.Stalled(limit) }

// follow wakes those who wait for a change of leader.
func (m *Member) follow(leader consensus.MemberID) {
	before := consensus.MemberID(m.leader.Swap(uint64(leader)))
	if before == leader {
		return
	}
	if before != consensus.NoMember {
		m.lostAt.Store(m.options.Clock.Now().UnixNano())
	}
	m.leaderMu.Lock()
	close(m.changed)
	m.changed = make(chan struct{})
	m.leaderMu.Unlock()
}

// ports ties the node to the member's goroutines.
func (m *Member) ports() node.Ports {
	return node.Ports{
		Send:         m.send,
		Persist:      m.disk.put,
		Apply:        func(entries []consensus.Entry) { m.applier.queue.put(applyRequest{entries: entries}) },
		Install:      func(meta consensus.SnapshotMeta) { m.applier.queue.put(applyRequest{install: &meta}) },
		SendSnapshot: m.sendSnapshot,
		StopSnapshot: m.sender.Stop,
		Configure:    m.configure,
		Observe:      m.observe,
	}
}

// configure opens and closes peers as the configuration in force says.
func (m *Member) configure(inForce raft.ConfigInForce) {
	config := inForce.Config
	config.Members = dialled(config.Members)
	m.transport.Configure(&config)
	m.changes.configured(&inForce)
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
			m.changes.undone(e.ID)
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

// writeDisk is the goroutine that owns the WAL: everything that waits goes into one sync.
func (m *Member) writeDisk() error {
	var spare []node.Persist
	var batches []wal.Batch
	for {
		select {
		case <-m.disk.signal:
		case <-m.stopping.Done():
			return nil
		}
		requests := m.disk.take(spare)
		spare = requests
		if len(requests) == 0 {
			continue
		}
		m.diskTask.Begin()
		batches = batches[:0]
		var seq uint64
		for i := range requests {
			if requests[i].Seq != 0 {
				seq = requests[i].Seq
				batches = append(batches, requests[i].Batch)
			}
		}
		if len(batches) > 0 {
			begun := m.options.Clock.Now()
			if err := m.data.WAL.Append(batches...); err != nil {
				return err
			}
			if m.options.Synced != nil {
				m.options.Synced(m.options.Clock.Now().Sub(begun))
			}
			if err := m.data.Persisted(batches); err != nil {
				return err
			}
		}
		for i := range requests {
			if len(requests[i].After) > 0 {
				m.deliver(requests[i].After)
			}
			for _, evaluation := range requests[i].Evaluate {
				m.evaluations.put(evaluation)
			}
		}
		if seq != 0 {
			m.inbox.put(raft.Persisted{Seq: seq})
		}
		if base := latestBase(requests); base != nil {
			if err := m.data.WAL.Compact(*base); err != nil {
				return err
			}
		}
		m.diskTask.Idle()
	}
}

// latestBase returns the last compaction among requests.
func latestBase(requests []node.Persist) *consensus.SnapshotMeta {
	for i := len(requests) - 1; i >= 0; i-- {
		if requests[i].Base != nil {
			return requests[i].Base
		}
	}
	return nil
}
