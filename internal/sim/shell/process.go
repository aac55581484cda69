package shell

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/member/upkeep"
)

// Process is one life of a member.
type Process struct {
	*Life
	Data      *datadir.Data
	Node      *node.Node // of Lanes
	Snapshots *Snapshots
	Clients   *Clients
	natives   *natives
	hub       *watch.Hub
	auto      bool // whether to offer is decided by what it gains
	fast      bool // native clients may use the fast path
	feed      member.Feed
	observe   func(event raft.Event)
	configure func(inForce raft.ConfigInForce)

	stores    datadir.Stores // the current store, as in a member
	Lanes     *lanes.Lanes
	leads     bool
	mute      func() bool // the core gets no ticks
	loop      loop
	distances distances
	log       logWriter
	applying  applying
	applied   applied
	leases    *expiry.Revoker
	cleaner   cleaner
}

// New begins a life with the data on the disk. It does nothing by itself before Start.
func New(life *Life, data *datadir.Data, o *Options) (*Process, error) {
	p := &Process{
		Life: life, Data: data, hub: data.Machine.Hub(), auto: o.FastPath == offers.Auto,
		fast: o.FastPath != offers.Never, observe: o.Observe, feed: o.Feed, configure: o.Configure, mute: o.Mute,
	}
	p.stores.Set(data.Generation)
	p.Lanes = p.newLanes(o)
	put := p.Lanes.Inbox().Put
	p.loop = loop{Life: life, lanes: p.Lanes, stepped: o.Stepped}
	p.loop.timer = timer{Life: life, fire: p.Wake}
	p.log, p.applying = logWriter{Life: life, lanes: p.Lanes}, applying{Life: life, lanes: p.Lanes}
	p.distances = distances{Life: life}
	compactor := upkeep.NewCompactor(&p.stores, upkeep.CompactionPace{Keys: 1 + life.Rng.IntN(200)})
	reclaimer := upkeep.NewReclaimer(&p.stores, nil, reclaimPace, slog.New(slog.DiscardHandler))
	p.cleaner = cleaner{Life: life, data: data, put: put, compactor: compactor, reclaimer: reclaimer}
	p.Snapshots = newSnapshots(life, data, &p.stores, o.Carry)
	p.Snapshots.put = put
	p.applied = applied{Life: life, data: data, altered: o.Altered}
	p.Clients = &Clients{
		Life: life, recall: p.applied.recall, requests: p.Lanes.Requests(), asked: map[kv.LeaseID][]*asked{},
		revokes: o.Revokes,
		term:    func() consensus.Term { return p.Node.Replica().Term() },
	}
	p.leases = newRevoker(life, &p.stores, o, p.Leads, p.Clients)
	p.Clients.leases = p.leases
	p.natives = &natives{
		Life: life, lanes: p.Lanes, stores: &p.stores, complete: p.applied.recall,
		ctx:       context.Background(),
		toCore:    func(inputs ...raft.Input) { put(inputs...); p.Wake() },
		replicate: p.propose, tell: o.TellHeard, silent: o.Silent,
		read: func(done proposals.Completion) error {
			_, err := p.Lanes.Requests().Read(done)
			return err
		},
	}
	p.natives.begin(data.Identity.Cluster, &o.Natives)
	p.tellRestart()
	err := p.Lanes.Start(node.Options{
		Raft: o.Raft, FirstSession: data.Boots << 32, RetryTicks: 3 * o.Raft.ElectionTicks,
		FastPath: o.FastPath, OfferFaults: o.Offers, CommitDelay: o.Delay,
	}, data.Restored, lanes.Parts{Received: p.Snapshots.receiver, Leases: p.leases, Compactor: compactor})
	if err != nil {
		return nil, err
	}
	p.Node = p.Lanes.Node()
	p.distances.node = p.Node
	return p, nil
}

// newLanes makes the lanes of package member/lanes.
func (p *Process) newLanes(o *Options) *lanes.Lanes {
	return lanes.New(lanes.Options{
		Data: p.Data, Stores: &p.stores, Clock: clock{p.Life, p.Clock}, Logger: discard,
		Retention: upkeep.Retention{
			CatchUpEntries: int(p.Pace.Keep), Slack: int(p.Pace.Keep), CatchUpBytes: keptBytes, FlushBytes: keptBytes,
		},
		TickInterval: p.Pace.Tick, HeartbeatInterval: time.Duration(o.Raft.HeartbeatTicks) * p.Pace.Tick, MostTicks: o.Most,
		InboxBytes: o.Raft.MaxApplyingBytes, RequestTimeout: o.RequestTimeout,
		MaxEntries: func() int { return 1 + p.Rng.IntN(64) },
		Checks:     checks{p}, LogFaults: o.Log,
	}, host{p})
}

// tellRestart reports to the checkers what was on the disk.
func (p *Process) tellRestart() {
	restored := &p.Data.Restored
	p.Suite.Started(p.ID, restored)
	p.Actions.Started(restored.Hard, restored.Base.Position, restored.Entries)
}

// keptBytes of the log are kept for followers: so few that a run reaches the bound.
const keptBytes = 64 << 10

// Start starts the ticks and the periodic work of the parts.
func (p *Process) Start() {
	p.committed()
	p.Suite.Stepped(p.ID)
	p.Lanes.Open()
	p.loop.begin()
	p.After(0, p.distances.ping)
	p.cleaner.flushLater()
	p.leases.Begin()
}

// BeginCompaction starts the periodic deletion of compacted revisions.
func (p *Process) BeginCompaction() { p.cleaner.compactLater() }

// GainsByOffers reports whether the member, with the automatic setting, is so far from its leader and has so many other voters
// that offers to all of them give it results sooner. Then it makes offers, unless it pauses.
func (p *Process) GainsByOffers() bool {
	core := p.Node.Replica()
	distance, known := p.distances.get(core.Leader())
	return p.auto && core.Leader() != consensus.NoMember && core.Leader() != p.ID && known && distance >= 2*time.Millisecond &&
		len(core.InForce().Config.Voters) > 3
}

// NewStream begins the stream of a native client. send carries responses to it, in order; leave ends the stream.
func (p *Process) NewStream(
	key []byte, caller Caller, send func(r *quoratepb.ProposeResponse), leave func(),
) *Stream {
	return newStream(p.natives, key, caller, send, leave)
}

// Heard takes the report of another member about its native clients, while this one leads.
func (p *Process) Heard(clients []consensus.MemberID) { p.natives.clients.Heard(clients) }

// DeliverToClients passes messages to native clients to their streams here.
func (p *Process) DeliverToClients(messages []consensus.Message) { p.natives.clients.Deliver(messages) }

// Put leaves inputs for the next step.
func (p *Process) Put(inputs ...raft.Input) { p.Lanes.Inbox().Put(inputs...) }

// Wake asks for a step soon.
func (p *Process) Wake() { p.loop.wake(p.Pace.Loop) }

// Leads reports whether this member leads.
func (p *Process) Leads() bool { return p.leads }

// Hub returns the watch hub.
func (p *Process) Hub() *watch.Hub { return p.hub }

// EnvClock is the machine's clock.
func (p *Process) EnvClock() env.Clock { return clock{p.Life, p.Clock} }

// Writes reports whether a write of the log is under way, FinishWrite ends it at once.
func (p *Process) Writes() bool { return len(p.log.writing) > 0 && !p.log.synced }
func (p *Process) FinishWrite() { _, _ = p.Lanes.Writer().Sync(p.log.writing) } // the disk may die in this call

func (p *Process) propose(command *kv.Command, done proposals.Completion) error {
	_, err := p.Lanes.Requests().Propose(command, done)
	return err
}

func (p *Process) committed() {
	core := p.Node.Replica()
	p.Actions.Committed(core.Term(), core.Commit())
}
