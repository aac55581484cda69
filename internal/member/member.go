package member

import (
	"context"

	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/epoch"
	"github.com/quorate/quorate/internal/integrity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/answers"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/level"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/offers"
	"github.com/quorate/quorate/internal/peercall"
	"github.com/quorate/quorate/internal/snapshots"
	"github.com/quorate/quorate/internal/transport"
	"github.com/quorate/quorate/internal/upkeep"
	"github.com/quorate/quorate/internal/watchdog"
)

// Member is one running member of a cluster: what it is made of, and what package rpc and the server ask of it.
type Member struct {
	options Options
	data    *datadir.Data
	life    lifecycle
	stores  datadir.Stores // the store that counts; data.Generation is the same, for the goroutine that applies
	config  appliedConfig
	hub     *watch.Hub
	dog     *watchdog.Watchdog // over the goroutines that everything depends on

	inbox    inbox
	loop     loop
	ports    nodePorts
	leader   knownLeader
	requests requests

	peers   peers
	told    *toldAddresses
	handler PeerHandler
	epochs  *epoch.Monitor

	members   Membership
	clients   *clients.Clients
	leases    leaseCalls
	sender    *snapshots.Sender
	integrity *integrity.Checker
	departure departure

	tasks []task
}

// task is a goroutine that runs as long as the member. Its error ends the member.
type task struct {
	name string
	run  func(ctx context.Context) error
}

// New builds a member from its data; Start makes it run.
func New(options Options) (*Member, error) {
	if options.Answers == nil {
		options.Answers = answers.New(0, 0)
	}
	m := &Member{options: options, data: options.Data, hub: options.Data.Machine.Hub(), dog: watchdog.New(options.Clock)}
	o := &m.options
	m.life.init()
	m.leader.init(m.ID())
	m.departure.init()
	m.inbox.init(o.Raft.MaxApplyingBytes)
	context.AfterFunc(m.life.stopping, m.inbox.close)
	m.stores.Set(o.Data.Generation)
	context.AfterFunc(m.life.stopping, m.stores.Stop)
	m.config = appliedConfig{&m.stores}
	m.told = newToldAddresses(o)
	m.epochs = newEpochs(o, &m.config, &m.peers, m.told)
	m.requests = requests{
		timeout: o.RequestTimeout, maxBytes: o.MaxRequestBytes, clock: o.Clock, stopping: m.life.stopping,
		wake: m.inbox.wake, superseded: m.epochs.Superseded, leader: &m.leader, connected: m.peers.connected,
		started: make(chan struct{}),
	}
	m.requests.levels = &levels{
		stores: &m.stores, readIndex: m.requests.readIndex, propose: m.requests.command, logger: o.Logger,
		needs: func(payload []byte) (level.Level, bool) { return m.stores.Latest().Needs(payload) },
	}
	m.sender = newSender(o, &m.stores, &m.peers)
	caller := newCaller(o, m.life.stopping, callPorts{&m.leader, &m.config, &m.peers}, &m.members.views)
	m.members.init(o, &membershipPorts{
		leader: &m.leader, requests: &m.requests, config: &m.config, peers: &m.peers, caller: caller,
		status: m.loop.askStatus, put: m.inbox.put, progress: m.sender.Progress, alarms: m.Alarms,
		stopping: m.life.stopping,
	})
	m.integrity = newIntegrity(o, &m.leader, &m.config, &m.requests, caller, m.inbox.put)
	m.leases = leaseCalls{
		leader: &m.leader, revoker: newRevoker(o, &m.stores, &m.leader, &m.requests, m.integrity), caller: caller,
	}
	forClients := &clientPorts{
		leader: &m.leader, stores: &m.stores, requests: &m.requests, handler: &m.handler, peers: &m.peers,
		caller: caller, life: &m.life, patience: o.electionTimeout(),
	}
	m.clients = newClients(o, forClients)
	m.serveCalls(caller.Table(), forClients)
	m.assemble()
	return m, nil
}

// serveCalls lets others ask for what they may, and makes the handler of what arrives from them.
func (m *Member) serveCalls(table *peercall.Table, clients *clientPorts) {
	greeter := &greeter{
		claim: claimOf(m.data), config: &m.config, epochs: m.epochs, readIndex: m.requests.readIndex,
		connected: m.peers.connected,
	}
	m.leases.serve(table)
	clients.serve(table, m.clients)
	greeter.serve(table)
	serveIntegrity(table, m.integrity)
	m.members.serve(table)
	m.handler = PeerHandler{
		inbox: &m.inbox, epochs: m.epochs, received: newReceiver(&m.options, &m.stores), calls: table, greeter: greeter,
		data: m.data, life: &m.life, logger: m.options.Logger,
	}
}

// assemble makes the goroutines, and ties the node to them.
func (m *Member) assemble() {
	o := &m.options
	m.loop = loop{
		clock: o.Clock, interval: o.TickInterval, beat: o.heartbeatInterval(), most: node.MostTicks(&o.Raft), inbox: &m.inbox,
		epochs: m.epochs, leader: &m.leader, task: m.dog.Watch("the member's loop"), stopping: m.life.stopping,
		follow: func(replica *raft.Replica) { m.clients.Follow(replica, o.FastPath != offers.Never) },
	}
	answers := &fastAnswers{stores: &m.stores, corrupt: m.integrity.Marked, deliver: m.clients.Deliver}
	answers.waiting.init()
	disk := newLogWriter(o, m.dog, m.clients.Deliver, answers.waiting.put, m.inbox.put)
	scrubber := upkeep.NewScrubber(&m.stores, o.Scrub)
	applied := &applyPorts{
		self: m.ID(), data: m.data, answers: o.Answers, loop: &m.loop, members: &m.members, integrity: m.integrity,
		departure: &m.departure,
	}
	applying := newApplying(
		o, m.dog, &m.stores, m.handler.received, m.leases.revoker, scrubber, &m.life, m.inbox.put, applied)
	binder := &binder{
		self: m.ID(), storage: o.Raft.Storage, config: &m.config, peers: &m.peers, changer: &m.members.changer,
		life: &m.life, logger: o.Logger,
	}
	m.ports = nodePorts{
		self: m.ID(), handler: &m.handler, deliver: m.clients.Deliver, taken: m.clients.Taken, disk: disk, applying: applying,
		sender: m.sender, peers: &m.peers, told: m.told, members: &m.members, leader: &m.leader, binder: binder,
		departure: &m.departure,
		life:      &m.life, logger: o.Logger, tick: o.TickInterval, electionTimeout: o.electionTimeout(),
	}
	pilot := &pilot{
		members: &m.members, ports: m.members.ports, binder: binder, clock: o.Clock, logger: o.Logger,
		electionTimeout: o.electionTimeout(), peerURLs: o.PeerURLs, told: m.told,
	}
	learner := &learner{
		claim: claimOf(m.data), told: m.told, peers: &m.peers, leader: &m.leader, clock: o.Clock,
		electionTimeout: o.electionTimeout(),
	}
	m.tasks = []task{
		{"integrity", m.integrity.Run}, {"loop", m.loop.run}, {"disk", disk.run}, {"apply", applying.run},
		{"fast", answers.run}, {"leases", m.leases.revoker.Run}, {"scrub", scrubber.Run},
		{"reclaim", upkeep.NewReclaimer(&m.stores, o.diskLow, upkeep.ReclaimPace{}, o.Logger).Run},
		{"promote", pilot.promoteLearners}, {"jobs", pilot.runJobs}, {"clients", m.clients.Watch},
		{"addresses", pilot.keepAddresses}, {"learn", learner.run}, {"epochs", m.epochs.Run},
	}
	if o.Care.On() {
		m.tasks = append(m.tasks, task{"care", pilot.repairVoters})
	}
}

// Start connects the member to the others and begins to tick. The transport must deliver to PeerHandler.
func (m *Member) Start(t *transport.Transport) error {
	m.peers.transport = t
	core := m.options.Raft
	core.Fast = raft.FastOptions{Footprint: kv.PayloadFootprint, Revises: kv.Revises, State: stateIn(&m.stores)}
	body, err := node.New(node.Options{
		Raft:         core,
		FirstSession: m.data.Boots << 32,
		OpenBytes:    m.options.OpenBytes,
		RetryTicks:   3 * m.options.Raft.ElectionTicks,
		FastPath:     m.options.FastPath,
		CommitDelay:  m.options.CommitDelay,
	}, m.data.Restored, m.ports.ports())
	if err == nil && body.Replica().Status().Removed {
		err = ErrRemoved
	}
	if err != nil {
		m.life.stop() // for those who ask already
		return err
	}
	m.loop.node = body
	m.loop.publish()
	m.requests.open(body)
	for _, t := range m.tasks {
		m.life.run(t.name, t.run)
	}
	return nil
}
