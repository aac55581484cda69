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

	// Mute updates the state of the member's epoch by led, which says whether it knows a leader, and reports whether the member
	// takes no part in elections now, since its epoch may be over. Then no time passes for the core.
	Mute(led bool) bool
	// Admit leaves out of messages of this member to itself what it may not hear now.
	Admit(messages []consensus.Message) []consensus.Message
	// Superseded returns the reason why requests are refused, or nil if they are served.
	Superseded() error

	// Deliver sends messages to other members and to native clients.
	Deliver(messages []consensus.Message)
	// SendSnapshot begins to send a snapshot to a member. Its end is told by raft.SnapshotSent.
	SendSnapshot(to consensus.MemberID)
	// StopSnapshot ends it.
	StopSnapshot(to consensus.MemberID)
	// Distance is the round trip to a member, false while it is not known.
	Distance(to consensus.MemberID) (time.Duration, bool)
	// Connected reports whether a connection leads to a member.
	Connected(to consensus.MemberID) bool

	// Taken is told of the inputs that the core takes.
	Taken(inputs []raft.Input)
	// Stepped is told of each step after it.
	Stepped(replica *raft.Replica)
	// Configured is told of each configuration in force.
	Configured(inForce raft.ConfigInForce)
	// Observed is told of each event of the core.
	Observed(event raft.Event)

	// ApplyBatch lets the state machine apply a batch.
	ApplyBatch(batch []consensus.Entry) ([]kv.Result, error)
	// Applied is told of a batch once its proposals were told.
	Applied(batch []consensus.Entry, results []kv.Result)
	// Restored is told of a snapshot that has replaced the store.
	Restored(meta consensus.SnapshotMeta, machine *apply.Machine)
	// Corrupt reports whether this member must not answer from its state.
	Corrupt() bool
	// Needs is the feature level that an encoded command needs.
	Needs(payload []byte) level.Level
	// Active reports whether the feature level that a command needs is active.
	Active(needs level.Level) bool
}

// Checks are told what a member does before anything follows from it. They are for the simulator: in production there are none.
type Checks interface {
	// Persisting is told of a write when it is asked for.
	Persisting(request node.Persist)
	// Synced is told of writes that are on disk.
	Synced(requests []node.Persist)
	// Compacted is told what the log has forgotten.
	Compacted(base consensus.SnapshotMeta)
	// Committed is told that entries are to be applied.
	Committed(entries []consensus.Entry)
	// Applied is told of a batch before its proposals are told.
	Applied(batch []consensus.Entry, results []kv.Result)
	// Restored is told of a snapshot that has replaced the store before reads of it are told.
	Restored(meta consensus.SnapshotMeta, machine *apply.Machine)
	// NotInstalled is told of a snapshot that could not replace the store.
	NotInstalled(err error)
	// Decided is told of the proposals of this member that the fast path decided.
	Decided(decided []tally.Decision)
}

// unchecked are no Checks.
type unchecked struct{}

func (unchecked) Persisting(node.Persist)                         {}
func (unchecked) Synced([]node.Persist)                           {}
func (unchecked) Compacted(consensus.SnapshotMeta)                {}
func (unchecked) Committed([]consensus.Entry)                     {}
func (unchecked) Applied([]consensus.Entry, []kv.Result)          {}
func (unchecked) Restored(consensus.SnapshotMeta, *apply.Machine) {}
func (unchecked) NotInstalled(error)                              {}
func (unchecked) Decided([]tally.Decision)                        {}
