package lanes

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/applier"
	"github.com/quorate/quorate/internal/member/node"
)

// ports connect the node's outputs to the other lanes and the host. The loop calls them.
func (l *Lanes) ports() node.Ports {
	return node.Ports{
		Send: l.send,
		Persist: func(request node.Persist) {
			l.checks.Persisting(request)
			l.disk.queue.Put(request)
		},
		Apply: func(entries []consensus.Entry) {
			l.checks.Committed(entries)
			l.apply.queue.Put(applier.Work{Entries: entries})
		},
		Install:      func(meta consensus.SnapshotMeta) { l.apply.queue.Put(applier.Work{Install: &meta}) },
		SendSnapshot: l.host.SendSnapshot,
		StopSnapshot: l.host.StopSnapshot,
		Configure:    l.configure,
		Observe:      l.observe,
		Distance:     l.host.Distance,
		Taken:        l.host.Taken,
		Decided:      l.checks.Decided,
	}
}

// send delivers messages to other members and clients. A message to this member itself is a record of its own proposal, which
// it keeps as any voter does.
func (l *Lanes) send(messages []consensus.Message) {
	own := slices.IndexFunc(messages, func(message consensus.Message) bool { return message.To == l.self })
	if own < 0 {
		l.host.Deliver(messages)
		return
	}
	others := make([]consensus.Message, 0, len(messages))
	for i := range messages {
		if messages[i].To == l.self {
			l.inbox.PutMessages(l.host.Admit(messages[i : i+1 : i+1]))
		} else {
			others = append(others, messages[i])
		}
	}
	l.host.Deliver(others)
}

func (l *Lanes) configure(inForce raft.ConfigInForce) {
	self, _ := inForce.Config.Member(l.self)
	l.leader.learner.Store(inForce.Config.IsLearner(l.self) && !self.Promote)
	l.host.Configured(inForce)
}

// observe passes events to the host, and changes of leadership to the apply lane.
func (l *Lanes) observe(events []raft.Event) {
	for _, event := range events {
		l.host.Observed(event)
		switch e := event.(type) {
		case raft.BecameLeader:
			l.apply.queue.Put(applier.Work{Lead: &applier.Leadership{Leads: true, Term: e.Term}})
		case raft.BecameFollower:
			l.apply.queue.Put(applier.Work{Lead: &applier.Leadership{Term: e.Term}})
		case raft.LogConflict:
			l.leader.Refuses(e)
		}
	}
}
