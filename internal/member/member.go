package member

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/epoch"
	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/integrity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/room"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/offers"
	"github.com/quorate/quorate/internal/peercall"
	"github.com/quorate/quorate/internal/snapshots"
	"github.com/quorate/quorate/internal/transport"
	"github.com/quorate/quorate/internal/upkeep"
	"github.com/quorate/quorate/internal/watchdog"
)

// Options say how a member runs. Data is what datadir.Open found on disk.
type Options struct {
	Data         *datadir.Data
	Raft         raft.Options
	TickInterval time.Duration
	// PeerURLs are where others reach this member, as somebody said at this start; empty: as the configuration says.
	PeerURLs []string

	RequestTimeout  time.Duration // for callers without a deadline of their own
	MaxRequestBytes int           // encoded command; zero: unlimited
	Retention       upkeep.Retention
	Scrub           upkeep.ScrubPace
	Integrity       integrity.Pace
	FastPath        offers.Setting
	Care            membership.Policy // of the members, if this one leads; the zero value is off
	Answers         *room.Budget      // memory for answers; nil: one of the default size
	ClientPatience  time.Duration     // for how long a native client may be silent; zero: DefaultClientPatience
	Clock           env.Clock
	DiskLow         func() bool // no room for what is not needed; nil: there always is
	Logger          *slog.Logger
	// Synced and Applied, if set, are told how long each write of the log and each applied batch took.
	Synced, Applied func(took time.Duration)
}

// Member is one running member of a cluster.
type Member struct {
	lifecycle
	knownLeader
	departure
	clusterBoard
	*clients.Clients

	options Options
	data    *datadir.Data
	logger  *slog.Logger
	node    *node.Node
	peers   peers
	hub     *watch.Hub

	inbox       inbox
	disk        *logWriter
	applier     *applier
	evaluations queue[raft.Evaluation] // of what this member answers fast as a leader
	received    *snapshots.Receiver
	sender      *snapshots.Sender
	scrubber    *upkeep.Scrubber
	leases      *expiry.Revoker
	integrity   *integrity.Checker
	status      statusBoard
	dog         *watchdog.Watchdog // over the goroutines that everything depends on
	loopTask    *watchdog.Task
	epochs      *epoch.Monitor

	stores      datadir.Stores // the store that counts; data.Generation is the same, for the goroutine that applies
	inferred    atomic.Uint64
	coreCounts  atomic.Pointer[raft.Counts]
	members     Membership
	caller      *peercall.Caller
	addresses   *autopilot.Addresses
	refusedOnce sync.Once // by a peer, for good
	requests    requests
	config      appliedConfig
	views       leaderView
	changer     changer
	transfer    transfer
}

// New builds a member from its data; Start makes it run.
func New(options Options) (*Member, error) {
	if options.Answers == nil {
		options.Answers = room.New(0, 0)
	}
	m := &Member{
		options: options,
		data:    options.Data,
		logger:  options.Logger,
		hub:     options.Data.Machine.Hub(),
	}
	m.lifecycle.init()
	m.knownLeader.init(m.ID())
	m.addresses = autopilot.NewAddresses(pilotPorts{m}, m.logger)
	m.members.init(m)
	m.caller = peercall.NewCaller(m.answers(), callPorts{m}, peercall.Options{
		Timeout: options.RequestTimeout, Poll: 5 * options.TickInterval, Stopping: m.stopping,
		NoLeader: ErrNoLeader, TimedOut: ErrTimeout, Stopped: ErrStopped,
	})
	m.members.caller = m.caller
	m.departure.init()
	m.stores.Set(options.Data.Generation)
	context.AfterFunc(m.stopping, m.stores.Stop)
	m.inbox.init()
	m.Clients = m.newClients()
	m.evaluations.init()
	m.dog = watchdog.New(options.Clock)
	m.loopTask = m.dog.Watch("the member's loop")
	m.scrubber = upkeep.NewScrubber(&m.stores, options.Scrub)
	m.config = appliedConfig{&m.stores}
	m.epochs = newEpochs(m)
	m.requests = requests{
		timeout: options.RequestTimeout, maxBytes: options.MaxRequestBytes, clock: options.Clock, stopping: m.stopping,
		wake: m.inbox.wake, superseded: m.Superseded, leader: &m.knownLeader, connected: m.peers.connected,
		started: make(chan struct{}),
	}
	m.views = leaderView{
		awaitStart: m.requests.awaitStart, status: m.Status, stores: &m.stores, clock: options.Clock, stopping: m.stopping,
		options: ViewOptions{
			MaxLearners: options.Raft.MaxLearners, Strict: options.Raft.StrictReconfig, Tick: options.TickInterval,
			Trouble: m.trouble, Transfer: func(id consensus.MemberID) *membership.TransferView { return m.sender.Progress(id) },
		},
	}
	m.changer = changer{
		confirm: func(ctx context.Context, request *consensus.ChangeRequest) error {
			return m.addresses.Confirm(ctx, request, membership.Lenient)
		},
		entry: m.requests.propose, readIndex: m.ReadIndex, config: m.config.now, changed: m.members.ConfigChanged,
		patience: m.electionTimeout(), poll: 5 * options.TickInterval, stopping: m.stopping,
	}
	m.transfer = transfer{
		leader: &m.knownLeader, status: m.Status, nameOf: m.config.nameOf, patience: 3 * m.electionTimeout(),
		begin: func(to consensus.MemberID) { m.inbox.put(raft.Transfer{To: to}) }, stopping: m.stopping,
	}
	m.leases = newLeases(m)
	m.received, m.sender = newReceiver(m), newSender(m)
	m.integrity = newIntegrity(m)
	m.disk, m.applier = newDisk(m), newApplier(m)
	return m, nil
}

// Start connects the member to the others and begins to tick. The transport must deliver to this member.
func (m *Member) Start(t *transport.Transport) error {
	m.peers.transport = t
	core := m.options.Raft
	core.Fast = raft.FastOptions{Footprint: kv.PayloadFootprint, Revises: kv.Revises, Fate: m.fate}
	body, err := node.New(node.Options{
		Raft:         core,
		FirstSession: m.data.Boots << 32,
		RetryTicks:   3 * m.options.Raft.ElectionTicks,
		FastPath:     m.options.FastPath,
	}, m.data.Restored, m.ports())
	if err == nil && body.Replica().Status().Removed {
		err = ErrRemoved
	}
	if err != nil {
		m.stop() // for those who ask already
		return err
	}
	m.node = body
	m.publish()
	m.requests.open(body)
	m.run("integrity", m.integrity.Run)
	m.run("loop", m.loop)
	m.run("disk", m.disk.run)
	m.run("apply", m.applier.run)
	m.run("fast", always(m.answerFast))
	m.run("leases", m.leases.Run)
	m.run("scrub", m.scrubber.Run)
	m.run("promote", always(m.promoteLearners))
	m.run("jobs", always(m.runJobs))
	m.run("clients", m.Clients.Watch)
	m.run("addresses", always(m.keepAddresses))
	m.run("epochs", m.epochs.Run)
	if m.options.Care.On() {
		m.run("care", always(m.repairVoters))
	}
	return nil
}

// always makes a goroutine of f, which knows by itself when this member stops.
func always(f func() error) func(context.Context) error {
	return func(context.Context) error { return f() }
}

// Stop ends the goroutines and closes log and store. Waiting requests fail with ErrStopped.
func (m *Member) Stop() error {
	m.end()
	m.requests.close()
	return m.data.Close()
}

// ID names this member, Cluster the cluster it belongs to.
func (m *Member) ID() consensus.MemberID       { return m.data.Identity.Member }
func (m *Member) Cluster() consensus.ClusterID { return m.data.Identity.Cluster }

// Machine gives the state machine for reading; release must be called when done. The pointer changes when a snapshot
// replaces the store, so nobody may keep it.
func (m *Member) Machine() (machine *apply.Machine, release func()) {
	return m.stores.Machine()
}

// Membership answers requests about the members of the cluster.
func (m *Member) Membership() *Membership { return &m.members }

func (m *Member) identity() consensus.Identity { return m.data.Identity }

// Hub is the member's watch hub; it outlives store replacements.
func (m *Member) Hub() *watch.Hub { return m.hub }

// Propose replicates a command and returns what applying it gave. Result.Err is a rejection; the error is one of
// this package's and says whether the command may still happen.
func (m *Member) Propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	return m.requests.command(ctx, command)
}

// ReadIndex returns once the state applied here shows everything that was acknowledged before the call.
func (m *Member) ReadIndex(ctx context.Context) error { return m.requests.readIndex(ctx) }

// ChangeConfig asks the leader, wherever it is, for a configuration change, and returns the configuration that was
// applied once the change is done by the rule of its protocol: joint waits for its second entry. It
// fails with a *membership.RefusedError, with a *membership.AddressError for peer URLs, and with ErrChangeAborted if somebody
// aborted a joint change.
func (m *Member) ChangeConfig(ctx context.Context, request consensus.ChangeRequest) (consensus.Config, error) {
	return m.changer.change(ctx, &request)
}

// TransferLeadership hands leadership to another voter and returns when it leads. Only on the leader. A cordoned voter, or one
// that is marked corrupt, is refused with a *CordonedError.
func (m *Member) TransferLeadership(ctx context.Context, to consensus.MemberID) error {
	return m.transfer.to(ctx, to)
}
