package member

import (
	"context"

	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/epoch"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/member/snapshots"
	"github.com/quorate/quorate/internal/member/upkeep"
	"github.com/quorate/quorate/internal/transport"
)

// Member is one running member of a cluster.
type Member struct {
	options Options
	data    *datadir.Data
	life    lifecycle
	stores  datadir.Stores // current generation of the store; data.Generation is the same, for the goroutine that applies
	config  appliedConfig
	hub     *watch.Hub
	dog     *watchdog // watches the loop, the log and the state machine

	lanes    *lanes.Lanes
	turns    turns
	watched  watched
	status   statusBoard
	requests requests
	binder   *binder

	peers   peers
	told    *toldAddresses
	handler PeerHandler
	epochs  *epoch.Monitor

	members   Membership
	clients   *clients.Clients
	leases    leaseCalls
	sender    *snapshots.Sender
	integrity *integrity.Checker
	verdicts  verdicts
	compactor *upkeep.Compactor
	departure departure

	tasks []task
}

// task is a goroutine that runs as long as the member. The member stops if it returns an error.
type task struct {
	name string
	run  func(ctx context.Context) error
}

// New builds a member from its data; Start makes it run.
func New(options Options) *Member {
	if options.Answers == nil {
		options.Answers = answers.New(0, 0)
	}
	m := &Member{options: options, data: options.Data, hub: options.Data.Machine.Hub(), dog: newWatchdog(options.Clock)}
	o := &m.options
	m.life.init()
	m.turns.init()
	m.watched.init(m.dog)
	m.departure.init()
	m.stores.Set(o.Data.Generation)
	context.AfterFunc(m.life.stopping, m.stores.Stop)
	m.config = appliedConfig{&m.stores}
	m.told = newToldAddresses(o)
	m.epochs = newEpochs(o, &m.config, &m.peers, m.told)
	m.requests = requests{
		self: m.ID(), stopping: m.life.stopping, superseded: m.epochs.Superseded, started: make(chan struct{}),
	}
	m.requests.levels = &levels{
		stores: &m.stores, clock: o.Clock, policy: o.LevelPolicy, readIndex: m.requests.readIndex, propose: m.requests.command,
		logger: o.Logger, verdicts: &m.verdicts,
	}
	m.lanes = lanes.New(lanes.Options{
		Data: o.Data, Stores: &m.stores, Retention: o.Retention, Clock: o.Clock, Logger: o.Logger,
		TickInterval: o.TickInterval, HeartbeatInterval: o.heartbeatInterval(), MostTicks: node.MostTicks(&o.Raft),
		InboxBytes: o.Raft.MaxApplyingBytes, RequestTimeout: o.RequestTimeout, MaxRequestBytes: o.MaxRequestBytes,
		Append: measured(o), Busy: m.watched.applies,
	}, host{m})
	m.requests.Requests = m.lanes.Requests()
	leader, inbox := m.lanes.Leader(), m.lanes.Inbox()
	context.AfterFunc(m.life.stopping, inbox.Close)
	m.sender = newSender(o, &m.stores, &m.peers)
	caller := newCaller(o, m.life.stopping, callPorts{leader, &m.config, &m.peers}, &m.members.views)
	m.verdicts = verdicts{own: o.Verdict, config: &m.config, leader: leader, caller: caller, status: m.Status, clock: o.Clock}
	m.members.init(o, &membershipPorts{
		leader: leader, requests: &m.requests, config: &m.config, peers: &m.peers, caller: caller,
		status: m.Status, put: inbox.Put, progress: m.sender.Progress, alarms: m.Alarms,
		stopping: m.life.stopping,
	})
	m.integrity = newIntegrity(o, leader, &m.config, &m.requests, caller, inbox.Put)
	m.leases = leaseCalls{
		leader: leader, requests: &m.requests, caller: caller,
		revoker: newRevoker(o, &m.stores, leader, &m.requests, m.integrity),
	}
	forClients := &clientPorts{
		leader: leader, stores: &m.stores, requests: &m.requests, handler: &m.handler, peers: &m.peers,
		caller: caller, life: &m.life, patience: o.electionTimeout(),
	}
	m.clients = newClients(o, forClients)
	m.serveCalls(caller.Table(), forClients)
	m.assemble()
	return m
}

// serveCalls fills the table of the calls that this member answers, and makes the handler of its transport.
func (m *Member) serveCalls(table *peercall.Table, clients *clientPorts) {
	greeter := &greeter{
		claim: claimOf(m.data), config: &m.config, epochs: m.epochs, readIndex: m.requests.readIndex,
		connected: m.peers.connected,
	}
	m.leases.serve(table)
	clients.serve(table, m.clients)
	greeter.serve(table)
	serveIntegrity(table, m.integrity)
	m.verdicts.serve(table)
	serveTelling(table, m.options.Tell)
	m.members.serve(table)
	m.handler = PeerHandler{
		inbox: m.lanes.Inbox(), epochs: m.epochs, received: newReceiver(&m.options, &m.stores), calls: table, greeter: greeter,
		data: m.data, life: &m.life, logger: m.options.Logger,
	}
}

// assemble lists the goroutines.
func (m *Member) assemble() {
	o := &m.options
	m.compactor = upkeep.NewCompactor(&m.stores, o.Compaction)
	m.binder = &binder{
		self: m.ID(), storage: o.Raft.Storage, config: &m.config, peers: &m.peers, changer: &m.members.changer,
		life: &m.life, logger: o.Logger,
	}
	pilot := &pilot{
		members: &m.members, ports: m.members.ports, binder: m.binder, clock: o.Clock, logger: o.Logger,
		electionTimeout: o.electionTimeout(), peerURLs: o.PeerURLs, told: m.told,
	}
	learner := &learner{
		claim: claimOf(m.data), told: m.told, peers: &m.peers, leader: m.lanes.Leader(), clock: o.Clock,
		electionTimeout: o.electionTimeout(),
	}
	m.tasks = []task{
		{"integrity", m.integrity.Run}, {"loop", m.runLoop}, {"disk", m.runDisk}, {"apply", m.runApply},
		{"fast", m.runAnswers}, {"leases", m.leases.revoker.Run}, {"compact", m.compactor.Run},
		{"reclaim", upkeep.NewReclaimer(&m.stores, o.diskLow, upkeep.ReclaimPace{}, o.Logger).Run},
		{"promote", pilot.promoteLearners}, {"jobs", pilot.runJobs}, {"clients", m.clients.Watch},
		{"addresses", pilot.keepAddresses}, {"learn", learner.run}, {"epochs", m.epochs.Run},
		{"verdicts", m.verdicts.run},
	}
	if o.Care.On() {
		m.tasks = append(m.tasks, task{"care", pilot.repairVoters})
	}
}

// Start connects the member to the others and begins to tick. The transport must deliver to PeerHandler.
func (m *Member) Start(t *transport.Transport) error {
	m.peers.transport.set.Store(t)
	err := m.lanes.Start(node.Options{
		Raft:         m.options.Raft,
		FirstSession: m.data.Boots << 32,
		OpenBytes:    m.options.OpenBytes,
		RetryTicks:   3 * m.options.Raft.ElectionTicks,
		FastPath:     m.options.FastPath,
		CommitDelay:  m.options.CommitDelay,
	}, m.data.Restored, lanes.Parts{Received: m.handler.received, Leases: m.leases.revoker, Compactor: m.compactor})
	if err == nil && m.lanes.Node().Replica().Status().Removed {
		err = ErrRemoved
	}
	if err != nil {
		m.life.stop() // callers that wait for Start get ErrStopped now
		return err
	}
	m.lanes.Open()
	m.requests.open()
	for _, t := range m.tasks {
		m.life.run(t.name, t.run)
	}
	return nil
}
