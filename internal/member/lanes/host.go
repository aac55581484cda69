package lanes

import (
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/node"
)

// Lane is one of the lanes of a member.
type Lane uint8

// The lanes.
const (
	Loop    Lane = iota // Lanes.Take and Step
	Disk                // Lanes.Write, or TakeWrites and Writer
	Apply               // Lanes.Apply
	Answers             // Lanes.Answer
)

// Host is the member around the lanes.
type Host interface {
	// Turn asks for a turn of a lane, and returns at once.
	Turn(lane Lane)
	// Background runs f beside the lanes.
	Background(f func())
	// Fail ends the member.
	Fail(err error)
	// Stopped reports whether the member ends.
	Stopped() bool

	// Mute updates the state of the member's epoch by led, which says whether the member knows a leader, and reports whether
	// the member takes no part in elections now, since its epoch may be over. Then the core gets no ticks.
	Mute(led bool) bool
	// Admit filters messages of this member to itself: it leaves out those that the member must not handle in its present
	// state.
	Admit(messages []consensus.Message) []consensus.Message
	// Superseded returns the reason why requests are refused, or nil if they are served.
	Superseded() error

	// Deliver sends messages to other members and to native clients.
	Deliver(messages []consensus.Message)
	// SendSnapshot begins to send a snapshot to a member. Its end is reported to the core as raft.SnapshotSent.
	SendSnapshot(to consensus.MemberID)
	// StopSnapshot stops the transfer to a member.
	StopSnapshot(to consensus.MemberID)
	// Distance is the round-trip time to a member; false while it is unknown.
	Distance(to consensus.MemberID) (time.Duration, bool)
	// Connected reports whether a connection leads to a member.
	Connected(to consensus.MemberID) bool

	// Taken is called with the inputs that the core takes.
	Taken(inputs []raft.Input)
	// Stepped is called after each step of the core.
	Stepped(replica *raft.Replica)
	// Configured is called with each configuration that comes into force.
	Configured(inForce raft.ConfigInForce)
	// Observed is called with each event of the core.
	Observed(event raft.Event)

	// ApplyBatch applies a batch to the state machine.
	ApplyBatch(batch []consensus.Entry) ([]kv.Result, error)
	// Applied is called with a batch after its proposals were completed.
	Applied(batch []consensus.Entry, results []kv.Result)
	// Restored is called after a snapshot has replaced the store.
	Restored(meta consensus.SnapshotMeta, machine *apply.Machine)
	// Corrupt reports whether this member must not answer from its state.
	Corrupt() bool
	// Needs is the feature level that an encoded command needs.
	Needs(payload []byte) level.Level
	// Active reports whether the feature level that a command needs is active.
	Active(needs level.Level) bool
}

// Checks are called before a member's actions have consequences. They are for the simulator: in production there are none.
type Checks interface {
	// Persisting is called when a write is requested.
	Persisting(request node.Persist)
	// Synced is called when writes are on disk.
	Synced(requests []node.Persist)
	// Compacted is called when the log was truncated up to base.
	Compacted(base consensus.SnapshotMeta)
	// Committed is called when entries are queued to be applied.
	Committed(entries []consensus.Entry)
	// Applied is called with a batch before its proposals are completed.
	Applied(batch []consensus.Entry, results []kv.Result)
	// Restored is called after a snapshot has replaced the store, before reads that wait for it are completed.
	Restored(meta consensus.SnapshotMeta, machine *apply.Machine)
	// NotInstalled is called when a snapshot could not replace the store.
	NotInstalled(err error)
	// Decided is called with the proposals of this member that the fast path decided.
	Decided(decided []tally.Decision)
}

// unchecked are Checks that do nothing.
type unchecked struct{}

func (unchecked) Persisting(node.Persist)                         {}
func (unchecked) Synced([]node.Persist)                           {}
func (unchecked) Compacted(consensus.SnapshotMeta)                {}
func (unchecked) Committed([]consensus.Entry)                     {}
func (unchecked) Applied([]consensus.Entry, []kv.Result)          {}
func (unchecked) Restored(consensus.SnapshotMeta, *apply.Machine) {}
func (unchecked) NotInstalled(error)                              {}
func (unchecked) Decided([]tally.Decision)                        {}
