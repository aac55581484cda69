package shell

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/offers"
)

// Options say how a process runs.
type Options struct {
	Raft     raft.Options
	FastPath offers.Setting
	Most     int64         // ticks in one step
	Extend   time.Duration // what a new leader adds to every lease

	Mute      func() bool                      // time does not pass for the core
	Stepped   func()                           // is told of each step
	Observe   func(events []raft.Event)        // is told of events
	Configure func(inForce raft.ConfigInForce) // is told of the configuration in force
	Carry     Carry

	// Negative controls.
	Offers  offers.Faults
	Early   time.Duration                                   // leases end so much too early
	Altered func(batch []consensus.Entry) []consensus.Entry // what is applied instead of a batch; nil: itself
}

// Process is one life of a member.
type Process struct {
	*Life
	Data      *datadir.Data
	Node      *node.Node
	Leases    *Leases
	Snapshots *Snapshots
	Clients   *Clients
	hub       *watch.Hub
	auto      bool // whether to offer is decided by what it gains
	observe   func(events []raft.Event)
	configure func(inForce raft.ConfigInForce)

	loop      loop
	distances distances
	log       logWriter
	applier   applier
	upkeep    upkeep
}

// New begins a life with what is on the disk. It does nothing by itself before Begin.
func New(life *Life, data *datadir.Data, o *Options) (*Process, error) {
	p := &Process{
		Life: life, Data: data, hub: data.Machine.Hub(), auto: o.FastPath == offers.Auto,
		observe: o.Observe, configure: o.Configure,
	}
	put := p.loop.Put
	p.loop = loop{Life: life, begun: life.Clock(), most: o.Most, mute: o.Mute, stepped: o.Stepped}
	p.loop.timer = timer{Life: life, fire: p.loop.Wake}
	p.distances = distances{Life: life}
	p.log = logWriter{Life: life, data: data, put: put, core: func() *raft.Replica { return p.Node.Replica() }}
	p.upkeep = upkeep{Life: life, data: data, put: put}
	p.Leases = &Leases{Life: life, data: data, extend: o.Extend, early: o.Early, propose: p.revoke, wake: p.loop.Wake}
	p.Snapshots = &Snapshots{Life: life, data: data, dir: data.Options.Dir, carry: o.Carry, put: put}
	p.applier = applier{
		Life: life, data: data, snapshots: p.Snapshots, leases: p.Leases, put: put, altered: o.Altered,
	}
	p.Clients = &Clients{Life: life, leases: p.Leases, put: put, wake: p.loop.Wake, recall: p.applier.recall}
	life.Suite.Recovered(life.ID, data.Restored.Hard, data.Restored.Base, data.Restored.Entries, data.Restored.Applied)
	life.Suite.RecoveredRecords(life.ID, data.Restored.Records)
	life.Suite.Offers.Began(life.ID)
	life.Actions.Started(data.Restored.Hard, data.Restored.Base.Position, data.Restored.Entries)
	core := o.Raft
	core.Fast = raft.FastOptions{
		Footprint: kv.PayloadFootprint, Revises: kv.Revises,
		Fate: func(id consensus.ProposalID) fast.Fate { return node.FateOf(data.Machine, id) },
	}
	body, err := node.New(node.Options{
		Raft: core, FirstSession: data.Boots << 32, RetryTicks: 3 * core.ElectionTicks,
		FastPath: o.FastPath, OfferFaults: o.Offers,
	}, data.Restored, p.ports())
	if err != nil {
		return nil, err
	}
	p.Node, p.loop.node, p.applier.node, p.Clients.node, p.distances.node = body, body, body, body, body
	return p, nil
}

// Begin lets time pass and the parts do what they do again and again.
func (p *Process) Begin() {
	p.committed()
	p.Suite.Stepped(p.ID)
	p.loop.begin()
	p.After(0, p.distances.ping)
	p.upkeep.flushLater()
	p.After(leaseScan, p.Leases.scan)
}

// BeginScrub lets what compactions made invisible be deleted from time to time.
func (p *Process) BeginScrub() { p.upkeep.scrubLater() }

// GainsByOffers reports whether the member, with the setting that decides by itself, is so far from its leader and has so many
// other voters that what it offers to all of them can be known sooner. Then it offers, unless it pauses.
func (p *Process) GainsByOffers() bool {
	core := p.Node.Replica()
	distance, known := p.distances.get(core.Leader())
	return p.auto && core.Leader() != consensus.NoMember && core.Leader() != p.ID && known && distance >= 2*time.Millisecond &&
		len(core.InForce().Config.Voters) > 3
}

// Put leaves inputs for the next step.
func (p *Process) Put(inputs ...raft.Input) { p.loop.Put(inputs...) }

// Wake makes a step happen soon.
func (p *Process) Wake() { p.loop.Wake() }

// Leads reports whether this member leads.
func (p *Process) Leads() bool { return p.Leases.leads }

// Hub returns the watch hub.
func (p *Process) Hub() *watch.Hub { return p.hub }

// Writes reports whether a write of the log is under way, FinishWrite ends it at once.
func (p *Process) Writes() bool { return len(p.log.writing) > 0 }
func (p *Process) FinishWrite() { _ = p.log.append(p.log.writing) } // the disk may be about to die

func (p *Process) ports() node.Ports {
	return node.Ports{
		Send:    p.send,
		Persist: p.log.persist,
		Apply: func(entries []consensus.Entry) {
			p.committed()
			p.applier.do(work{entries: entries})
		},
		Install:      func(meta consensus.SnapshotMeta) { p.applier.do(work{install: &meta}) },
		SendSnapshot: p.Snapshots.send,
		Configure:    p.configure,
		Observe:      p.observe,
		Distance:     p.distances.get,
		Taken:        p.loop.taken,
		Decided: func(wins []tally.Decision) {
			p.Actions.Decided(wins)
			p.Suite.FastDecided(p.ID, wins)
		},
	}
}

func (p *Process) revoke(command *kv.Command) error {
	_, err := p.Node.Propose(command, Completion(func(kv.Result, error) {}))
	return err
}

func (p *Process) committed() {
	core := p.Node.Replica()
	p.Actions.Committed(core.Term(), core.Commit())
}

// send lets messages travel, but for those to itself.
func (p *Process) send(messages []consensus.Message) {
	for i := range messages {
		if messages[i].To == p.ID {
			p.Put(raft.Receive{Message: messages[i]})
		}
	}
	p.Send(messages)
}
