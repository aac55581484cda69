package lanes

import (
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/logwriter"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/member/snapshots"
	"github.com/quorate/quorate/internal/member/upkeep"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Options configure the lanes of a member.
type Options struct {
	Data      *datadir.Data
	Stores    *datadir.Stores // the current generation of the store
	Retention upkeep.Retention
	Clock     env.Clock
	Logger    *slog.Logger

	TickInterval time.Duration
	// HeartbeatInterval is the unit of lateBeats: see Late.
	HeartbeatInterval time.Duration
	MostTicks         int64         // in one step
	InboxBytes        int           // limit of Inbox for each member
	RequestTimeout    time.Duration // of requests whose callers do not end them earlier
	MaxRequestBytes   int           // of an encoded command; zero: unlimited

	// The following are optional.

	Append     func(batches ...wal.Batch) error // to the log; nil: Data.WAL.Append
	MaxEntries func() int                       // limit of the next batch; nil: the default of package applier
	Busy       func(busy bool)                  // called when the apply lane begins a batch, and when none is left
	Checks     Checks
	LogFaults  logwriter.Faults // tests only
}

// Parts are the parts of a member that follow the work of the apply lane.
type Parts struct {
	Received  *snapshots.Receiver
	Leases    *expiry.Revoker
	Compactor *upkeep.Compactor
}

// Lanes are the lanes of one member, with their queues.
type Lanes struct {
	host     Host
	checks   Checks
	options  Options
	self     consensus.MemberID
	leader   *KnownLeader
	requests *Requests
	inbox    Inbox
	loop     loop
	disk     disk
	apply    applying
	answers  answering
}

// New makes the lanes of a member. They work once Start has made the node.
func New(options Options, host Host) *Lanes {
	l := &Lanes{host: host, checks: options.Checks, options: options, self: options.Data.Identity.Member}
	if l.checks == nil {
		l.checks = unchecked{}
	}
	l.leader = NewKnownLeader(l.self)
	l.inbox.init(options.InboxBytes, func() { host.Turn(Loop) })
	l.requests = NewRequests(&options, host, l.leader)
	l.disk.queue.turn = func() { host.Turn(Disk) }
	l.apply.queue.turn = func() { host.Turn(Apply) }
	l.answers.queue.turn = func() { host.Turn(Answers) }
	return l
}

// Start makes the node from the state that was read from disk. From then on the lanes may call any method of the host.
func (l *Lanes) Start(o node.Options, restored raft.Restored, parts Parts) error {
	l.disk.writer, l.apply.applier = l.newWriter(), l.newApplier(parts)
	o.Raft.Fast = raft.FastOptions{Footprint: kv.PayloadFootprint, Revises: kv.Revises, State: l.stateOf}
	o.Raft.Readable = kv.Readable
	body, err := node.New(o, restored, l.ports())
	if err != nil {
		return err
	}
	l.loop.node = body
	l.loop.ticks = node.NewTicks(l.options.Clock.Now(), l.options.TickInterval, l.options.MostTicks)
	l.loop.ticked = l.options.Clock.Now()
	return nil
}

// stateOf returns, for the core, the state of a proposal in the state machine. While a snapshot replaces the store, the state
// in the old one is still true, and the core asks again when the new store is there.
func (l *Lanes) stateOf(id consensus.ProposalID) fast.ProposalState {
	return node.StateOf(l.options.Stores.Latest(), id)
}

// Open begins to serve requests, after Start.
func (l *Lanes) Open() {
	l.published()
	l.requests.Open(l.loop.node)
}

// Inbox is the queue of the loop's inputs, Leader knows which member leads, and Requests takes proposals and reads. Any
// goroutine may use them.
func (l *Lanes) Inbox() *Inbox        { return &l.inbox }
func (l *Lanes) Leader() *KnownLeader { return l.leader }
func (l *Lanes) Requests() *Requests  { return l.requests }

// Node is the node of the loop; nil before Start.
func (l *Lanes) Node() *node.Node { return l.loop.node }
