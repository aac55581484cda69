package member

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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
	"github.com/quorate/quorate/internal/proposals"
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

	options   Options
	data      *datadir.Data
	logger    *slog.Logger
	node      *node.Node
	transport *transport.Transport
	hub       *watch.Hub

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

	started chan struct{} // closed by Start; others may ask before
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

		started: make(chan struct{}),
	}
	m.lifecycle.init()
	m.knownLeader.init()
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
	m.epochs = newEpochs(m)
	m.leases = newLeases(m)
	m.received, m.sender = newReceiver(m), newSender(m)
	m.integrity = newIntegrity(m)
	m.disk, m.applier = newDisk(m), newApplier(m)
	return m, nil
}

// Start connects the member to the others and begins to tick. The transport must deliver to this member.
func (m *Member) Start(t *transport.Transport) error {
	m.transport = t
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
	close(m.started)
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

// awaitStart lets a request wait that comes before Start has ended. It fails while this member serves nothing.
func (m *Member) awaitStart(ctx context.Context) error {
	select {
	case <-m.started:
		return m.Superseded()
	default:
	}
	select {
	case <-m.started:
		return m.Superseded()
	case <-ctx.Done():
		return ctx.Err()
	case <-m.stopping.Done():
		return ErrStopped
	}
}

// Stop ends the goroutines and closes log and store. Waiting requests fail with ErrStopped.
func (m *Member) Stop() error {
	m.end()
	if m.node != nil {
		m.node.Proposals().FailAll(ErrStopped)
	}
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

// waiter is a Completion that a goroutine waits for.
type waiter struct {
	result kv.Result
	route  proposals.Route
	err    error
	done   chan struct{}
}

func (w *waiter) Complete(result kv.Result, err error) {
	w.result, w.err = result, err
	w.done <- struct{}{}
}

// Via notes by which way the answer comes.
func (w *waiter) Via(route proposals.Route) { w.route = route }

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

// Propose replicates a command and returns what applying it gave. Result.Err is a rejection; the error is one of
// this package's and says whether the command may still happen.
func (m *Member) Propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	payload := command.Append(nil)
	if limit := m.options.MaxRequestBytes; limit > 0 && len(payload) > limit {
		return kv.Result{}, ErrTooLarge
	}
	return m.propose(ctx, consensus.EntryCommand, payload)
}

func (m *Member) propose(ctx context.Context, kind consensus.EntryKind, payload []byte) (kv.Result, error) {
	if err := m.awaitStart(ctx); err != nil {
		return kv.Result{}, err
	}
	w := waiters.Get().(*waiter)
	begun := m.options.Clock.Now()
	q, err := m.node.Proposals().Add(kind, payload, w)
	if err != nil {
		return kv.Result{}, err
	}
	m.inbox.wake()
	timer := timers.get(m.options.RequestTimeout)
	defer timers.put(timer)
	select {
	case <-w.done:
		result, err := w.result, w.err
		noteRoute(ctx, w.route)
		w.result, w.route, w.err = kv.Result{}, "", nil
		waiters.Put(w)
		return result, err
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = m.timeoutError(begun)
		if m.node.Proposals().Sent(q) && errors.Is(err, ErrNoLeader) {
			err = ErrLeaderFailed // it left for a leader that is gone since, so it may still happen
		}
	case <-m.stopping.Done():
		select {
		case <-w.done: // the answer came just before the end
			return w.result, w.err
		default:
			err = ErrStopped
		}
	}
	m.node.Proposals().Abandon(q) // the waiter is not pooled again: it may just be being completed
	return kv.Result{}, err
}

// timeoutError says what a request that ran out of time most likely waited for, in etcd's distinctions.
func (m *Member) timeoutError(begun time.Time) error {
	if err := m.Superseded(); err != nil {
		return err
	}
	if m.Leader() == consensus.NoMember {
		return ErrNoLeader
	}
	if m.lostSince(begun) {
		return ErrLeaderFailed
	}
	if leader := m.Leader(); leader != m.ID() {
		if _, connected := m.transport.ConnectedSince(leader); !connected {
			return ErrConnectionLost
		}
	}
	return ErrTimeout
}

// ReadIndex returns once the state applied here shows everything that was acknowledged before the call.
func (m *Member) ReadIndex(ctx context.Context) error {
	if err := m.awaitStart(ctx); err != nil {
		return err
	}
	shown := m.node.AwaitRead()
	m.inbox.wake()
	select {
	case <-shown:
		return nil
	default:
	}
	begun := m.options.Clock.Now()
	timer := timers.get(m.options.RequestTimeout)
	defer timers.put(timer)
	select {
	case <-shown:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return m.timeoutError(begun)
	case <-m.stopping.Done():
		return ErrStopped
	}
}

// TransferLeadership hands leadership to another voter and returns when it leads. Only on the leader. A cordoned voter, or one
// that is marked corrupt, is refused with a *CordonedError.
func (m *Member) TransferLeadership(ctx context.Context, to consensus.MemberID) error {
	status := m.Status()
	if m.Leader() != m.ID() {
		return ErrNotLeader
	}
	if !status.Config.IsVoter(to) {
		return ErrBadTransferee
	}
	if status.LeavesLeadership(to) {
		return &CordonedError{Name: m.nameOf(to), Corrupt: slices.Contains(status.Spared, to)}
	}
	m.inbox.put(raft.Transfer{To: to})
	ctx, cancel := context.WithTimeout(ctx, 3*m.electionTimeout())
	defer cancel()
	for {
		changed := m.LeaderChanged()
		if m.Leader() == to {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ErrTransferTimeout
			}
			return ctx.Err()
		case <-m.stopping.Done():
			return ErrStopped
		}
	}
}
