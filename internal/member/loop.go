package member

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/epoch"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/watchdog"
)

// loop is the goroutine that owns the node, and what it publishes for others to read.
type loop struct {
	clock    env.Clock
	interval time.Duration // of ticks
	beat     time.Duration // between heartbeats of a leader
	most     int64         // ticks at once
	inbox    *inbox
	epochs   *epoch.Monitor
	leader   *knownLeader
	task     *watchdog.Task
	follow   func(replica *raft.Replica) // of others who follow the core
	stopping context.Context

	node       *node.Node // set before it runs
	status     statusBoard
	inferred   atomic.Uint64
	late       atomic.Uint64 // heartbeats that this member as the leader sent too late
	coreCounts atomic.Pointer[raft.Counts]
}

// run takes everything that waits, steps the core once, and publishes what others read, until ctx ends.
func (l *loop) run(ctx context.Context) error {
	ticker := time.NewTicker(l.interval)
	defer ticker.Stop()
	passed := node.NewTicks(l.clock.Now(), l.interval, l.most)
	ticked := l.clock.Now()
	later := time.NewTimer(l.interval) // for offers that are not due yet
	defer later.Stop()
	for {
		select {
		case <-l.inbox.signal:
		case <-ticker.C:
		case <-later.C:
		case <-ctx.Done():
			return nil
		}
		l.task.Begin()
		inputs := l.inbox.take()
		now := l.clock.Now()
		if due := passed.Due(now); len(due) > 0 && !l.epochs.Update(l.leader.Leader() != consensus.NoMember).Mute() {
			inputs = append(due, inputs...)
			if now.Sub(ticked) > 3*l.beat && l.leader.leads() {
				l.late.Add(1)
			}
			ticked = now
			counts := l.node.Replica().Counts()
			l.coreCounts.Store(&counts)
		}
		l.node.Step(now, inputs...)
		if due, waits := l.node.Next(); waits {
			later.Reset(due.Sub(l.clock.Now()))
		}
		if l.node.Waiting() {
			l.inbox.wake()
		}
		l.publish()
	}
}

// publish makes the core's state readable by other goroutines.
func (l *loop) publish() {
	replica := l.node.Replica()
	l.inferred.Store(replica.Inferred())
	l.leader.follow(replica.Leader(), replica.Term(), l.clock.Now)
	if replica.Leader() != consensus.NoMember && l.epochs.State().Mute() {
		l.epochs.Update(true) // before anything is asked of the leader: a mute member drops its answers
	}
	l.follow(replica)
	l.status.answer(replica)
}

// askStatus is Member.Status.
func (l *loop) askStatus() raft.Status { return l.status.ask(l.stopping, l.inbox.wake) }

// counts is Member.CoreCounts.
func (l *loop) counts() raft.Counts {
	if counts := l.coreCounts.Load(); counts != nil {
		return *counts
	}
	return raft.Counts{}
}
