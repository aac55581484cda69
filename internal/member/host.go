package member

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/offers"
)

// host is the lanes.Host of the member.
type host struct{ *Member }

var _ lanes.Host = host{}

// Turn implements lanes.Host.
func (h host) Turn(lane lanes.Lane) { h.turns.ask(lane) }

// Background implements lanes.Host.
func (h host) Background(f func()) { h.life.background(f) }

// Fail implements lanes.Host.
func (h host) Fail(err error) { h.life.fail(err) }

// Stopped implements lanes.Host.
func (h host) Stopped() bool { return h.life.stopping.Err() != nil }

// Mute implements lanes.Host.
func (h host) Mute(led bool) bool { return h.epochs.Update(led).Mute() }

// Admit implements lanes.Host.
func (h host) Admit(messages []consensus.Message) []consensus.Message {
	return h.epochs.State().Admit(messages)
}

// Deliver implements lanes.Host.
func (h host) Deliver(messages []consensus.Message) { h.clients.Deliver(messages) }

// SendSnapshot streams a checkpoint of the store to a follower.
func (h host) SendSnapshot(to consensus.MemberID) {
	send := h.sender.Begin(h.life.stopping, to)
	h.life.background(func() {
		mark, err := send()
		h.lanes.Inbox().Put(raft.SnapshotSent{To: to, Position: mark, OK: err == nil})
	})
}

// StopSnapshot implements lanes.Host.
func (h host) StopSnapshot(to consensus.MemberID) { h.sender.Stop(to) }

// Distance implements lanes.Host.
func (h host) Distance(to consensus.MemberID) (time.Duration, bool) {
	return h.peers.transport.Distance(to)
}

// Connected implements lanes.Host.
func (h host) Connected(to consensus.MemberID) bool { return h.peers.connected(to) }

// Taken implements lanes.Host.
func (h host) Taken(inputs []raft.Input) { h.clients.Taken(inputs) }

// Stepped publishes the state of the core.
func (h host) Stepped(replica *raft.Replica) {
	if replica.Leader() != consensus.NoMember && h.epochs.State().Mute() {
		h.epochs.Update(true) // before the core asks the leader anything: a mute member drops the answers
	}
	h.clients.Follow(replica, h.options.FastPath != offers.Never)
	h.status.answer(replica)
}

// Configured opens and closes peers as the configuration in force says.
func (h host) Configured(inForce raft.ConfigInForce) {
	h.told.configure(&inForce, h.peers.configure)
	h.members.changes.Configured(&inForce)
	h.options.Logger.Info("configuration in force", "config", inForce.ID.String(), "voters", len(inForce.Config.Voters),
		"learners", len(inForce.Config.Learners), "joint", inForce.Config.IsJoint())
}

// configure makes the members of a configuration the peers that the transport dials.
func (p *peers) configure(config *consensus.Config) {
	if t := p.transport.set.Load(); t != nil {
		t.Configure(config)
	}
}

// Observed logs an event, and handles some.
func (h host) Observed(event raft.Event) {
	switch e := event.(type) {
	case raft.Denied:
		h.binder.distrust(e)
	case raft.ConfigUndone:
		h.members.changes.Undone(e.ID)
	case raft.Removed:
		h.life.background(h.leave)
	case raft.LogConflict:
		h.options.Logger.Error(event.String(), "do", conflictWords(&e, h.config.nameOf(h.ID()), h.config.nameOf(e.Leader)))
		return
	}
	h.options.Logger.Info(event.String())
}

// leave ends this member, which the cluster has removed, when departure.leave returns.
func (h host) leave() {
	h.departure.leave(h.life.stopping, h.options.electionTimeout(), h.options.TickInterval)
	h.life.fail(ErrRemoved)
}

// ApplyBatch applies a batch to the state machine, with memory for the results of proposals for which callers wait here.
func (h host) ApplyBatch(batch []consensus.Entry) ([]kv.Result, error) {
	if h.options.Applied == nil {
		return h.data.Machine.ApplyFor(batch, h.room)
	}
	begun := h.options.Clock.Now()
	results, err := h.data.Machine.ApplyFor(batch, h.room)
	if err == nil {
		h.options.Applied(h.options.Clock.Now().Sub(begun))
	}
	return results, err
}

// room returns memory for the result of a proposal for which a caller waits here; nil for other proposals.
func (h host) room(id consensus.ProposalID) kv.Account {
	if !h.lanes.Node().Awaits(id) {
		return nil
	}
	return h.options.Answers.Open(0)
}

// Applied notes the changes that a batch has made.
func (h host) Applied(batch []consensus.Entry, results []kv.Result) {
	if h.options.Feed != nil {
		h.options.Feed.Applied(h.data.Machine, batch, results)
	}
	if slices.ContainsFunc(batch, ofConfig) {
		h.noteRemoval()
	}
	h.members.applied(batch)
	h.integrity.Note()
}

// Restored notes the changes of a snapshot that has replaced the store.
func (h host) Restored(_ consensus.SnapshotMeta, machine *apply.Machine) {
	if h.options.Feed != nil {
		h.options.Feed.Replaced(machine)
	}
	h.noteRemoval()
	h.integrity.Note()
	h.members.restored()
}

// noteRemoval notes whether this member is still part of the configuration.
func (h host) noteRemoval() {
	config, _ := h.data.Machine.Config()
	h.departure.note(&config, h.ID())
}

// Corrupt implements lanes.Host.
func (h host) Corrupt() bool { return h.integrity.Marked() }

// Needs implements lanes.Host.
func (h host) Needs(payload []byte) level.Level {
	needs, _ := h.stores.Latest().Needs(payload)
	return needs
}

// Active implements lanes.Host.
func (h host) Active(needs level.Level) bool { return h.requests.levels.active(needs) }
