package shell

import (
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/sim/dice"
)

// host is the process as its lanes see it.
type host struct{ *Process }

var _ lanes.Host = host{}

// Turn implements lanes.Host: a lane works a drawn time later.
func (h host) Turn(lane lanes.Lane) {
	switch lane {
	case lanes.Loop:
		h.loop.wake(h.Pace.Loop)
	case lanes.Disk:
		h.log.write()
	case lanes.Apply:
		h.applying.begin()
	case lanes.Answers:
		h.After(dice.Exponential(h.Rng, h.Pace.Apply), h.Lanes.Answer)
	}
}

// Background implements lanes.Host.
func (h host) Background(f func()) { h.After(dice.Exponential(h.Rng, h.Pace.Apply), f) }

// Fail implements lanes.Host.
func (h host) Fail(err error) { h.Life.Fail(err) }

// Stopped implements lanes.Host.
func (h host) Stopped() bool { return !h.Runs() }

// Mute implements lanes.Host.
func (h host) Mute(bool) bool { return h.mute() }

// Admit implements lanes.Host. A member in any state handles its own records.
func (h host) Admit(messages []consensus.Message) []consensus.Message {
	h.Suite.Sent(messages)
	return messages
}

// Superseded implements lanes.Host.
func (h host) Superseded() error { return nil }

// Deliver implements lanes.Host.
func (h host) Deliver(messages []consensus.Message) { h.Send(messages) }

// SendSnapshot implements lanes.Host.
func (h host) SendSnapshot(to consensus.MemberID) { h.Snapshots.send(to) }

// StopSnapshot implements lanes.Host.
func (h host) StopSnapshot(to consensus.MemberID) { h.Snapshots.stop(to) }

// Distance implements lanes.Host.
func (h host) Distance(to consensus.MemberID) (time.Duration, bool) { return h.distances.get(to) }

// Connected implements lanes.Host.
func (h host) Connected(to consensus.MemberID) bool {
	_, known := h.distances.get(to)
	return known
}

// Taken tells the checkers what the core takes, in order.
func (h host) Taken(inputs []raft.Input) {
	if h.natives.clients.Taken(inputs); len(h.natives.offers) > 0 {
		h.After(0, h.natives.retry)
	}
	h.Suite.Stepping(h.ID)
	for i := range inputs {
		switch input := inputs[i].(type) {
		case raft.Receive:
			h.Suite.Offers.Took(h.ID, &input.Message)
			if m := &input.Message; m.Kind == consensus.MsgPropose || m.Kind == consensus.MsgFastPropose {
				h.Suite.Given(h.ID, m.Proposals)
			}
		case raft.Propose:
			h.Suite.Given(h.ID, input.Proposals)
		}
	}
}

// Stepped implements lanes.Host.
func (h host) Stepped(replica *raft.Replica) { h.natives.clients.Follow(replica, h.fast) }

// Configured implements lanes.Host.
func (h host) Configured(inForce raft.ConfigInForce) { h.configure(inForce) }

// Observed implements lanes.Host.
func (h host) Observed(event raft.Event) {
	h.observe(event)
	switch e := event.(type) {
	case raft.BecameLeader:
		h.leads = true
	case raft.BecameFollower:
		h.leads = false
	case raft.LeaderChanged:
		h.leads = e.Leader == h.ID
	}
}

// ApplyBatch implements lanes.Host: see applied.apply.
func (h host) ApplyBatch(batch []consensus.Entry) ([]kv.Result, error) { return h.applied.apply(batch) }

// Applied implements lanes.Host.
func (h host) Applied(batch []consensus.Entry, results []kv.Result) {
	if h.feed != nil {
		h.feed.Applied(h.Data.Machine, batch, results)
	}
}

// Restored implements lanes.Host.
func (h host) Restored(_ consensus.SnapshotMeta, machine *apply.Machine) {
	if h.feed != nil {
		h.feed.Replaced(machine)
	}
}

// Corrupt implements lanes.Host: no simulated member is marked corrupt.
func (h host) Corrupt() bool { return false }

// Needs implements lanes.Host.
func (h host) Needs(payload []byte) level.Level {
	needs, _ := h.stores.Latest().Needs(payload)
	return needs
}

// Active implements lanes.Host.
func (h host) Active(needs level.Level) bool {
	return h.stores.Latest().ActiveLevel() >= needs || h.Data.Options.Apply.Faults.Ungated
}
