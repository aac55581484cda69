package member

import (
	"log/slog"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/applier"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/snapshots"
)

// nodePorts does what the node puts out: it passes it on to the other goroutines and to the other members. The loop calls it.
type nodePorts struct {
	self      consensus.MemberID
	handler   *PeerHandler
	deliver   func(messages []consensus.Message) // to other members and to clients
	taken     func(inputs []raft.Input)
	disk      *logWriter
	applying  *applying
	sender    *snapshots.Sender
	peers     *peers
	told      *toldAddresses
	members   *Membership
	leader    *knownLeader
	binder    *binder
	departure *departure
	life      *lifecycle
	logger    *slog.Logger

	tick, electionTimeout time.Duration
}

// ports ties the node to them.
func (p *nodePorts) ports() node.Ports {
	return node.Ports{
		Send:         p.send,
		Persist:      p.disk.queue.put,
		Apply:        func(entries []consensus.Entry) { p.applying.queue.put(applier.Work{Entries: entries}) },
		Install:      func(meta consensus.SnapshotMeta) { p.applying.queue.put(applier.Work{Install: &meta}) },
		SendSnapshot: p.sendSnapshot,
		StopSnapshot: p.sender.Stop,
		Configure:    p.configure,
		Observe:      p.observe,
		Distance:     p.peers.transport.Distance,
		Taken:        p.taken,
	}
}

// send delivers messages, but for the records of this member's own proposals, which it holds like any voter.
func (p *nodePorts) send(messages []consensus.Message) {
	own := slices.IndexFunc(messages, func(message consensus.Message) bool { return message.To == p.self })
	if own < 0 {
		p.deliver(messages)
		return
	}
	others := make([]consensus.Message, 0, len(messages))
	for i := range messages {
		if messages[i].To == p.self {
			p.handler.admit(messages[i : i+1 : i+1])
		} else {
			others = append(others, messages[i])
		}
	}
	p.deliver(others)
}

// sendSnapshot streams a checkpoint of the store to a follower.
func (p *nodePorts) sendSnapshot(to consensus.MemberID) {
	send := p.sender.Begin(p.life.stopping, to)
	p.life.background(func() {
		mark, err := send()
		p.handler.inbox.put(raft.SnapshotSent{To: to, Position: mark, OK: err == nil})
	})
}

// configure opens and closes peers as the configuration in force says.
func (p *nodePorts) configure(inForce raft.ConfigInForce) {
	p.told.configure(&inForce, p.peers.transport.Configure)
	p.members.changes.Configured(&inForce)
	self, _ := inForce.Config.Member(p.self)
	p.leader.learner.Store(inForce.Config.IsLearner(p.self) && !self.Promote)
	p.logger.Info("configuration in force", "config", inForce.ID.String(), "voters", len(inForce.Config.Voters),
		"learners", len(inForce.Config.Learners), "joint", inForce.Config.IsJoint())
}

// observe writes events to the log, and takes note of some.
func (p *nodePorts) observe(events []raft.Event) {
	for _, event := range events {
		switch e := event.(type) {
		case raft.BecameLeader:
			p.applying.queue.put(applier.Work{Lead: &applier.Leadership{Leads: true, Term: e.Term}})
		case raft.BecameFollower:
			p.applying.queue.put(applier.Work{Lead: &applier.Leadership{Term: e.Term}})
		case raft.Denied:
			p.binder.distrust(e)
		case raft.ConfigUndone:
			p.members.changes.Undone(e.ID)
		case raft.Removed:
			p.life.background(p.leave)
		}
		if e, conflict := event.(raft.LogConflict); conflict {
			p.leader.refuses(e)
			names := p.binder.config
			p.logger.Error(event.String(), "do", conflictWords(&e, names.nameOf(p.self), names.nameOf(e.Leader)))
			continue
		}
		p.logger.Info(event.String())
	}
}

// leave ends a member that the cluster has removed.
func (p *nodePorts) leave() {
	p.departure.leave(p.life.stopping, p.electionTimeout, p.tick)
	p.life.fail(ErrRemoved)
}
