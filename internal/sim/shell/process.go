package shell

import (
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/applier"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/offers"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/upkeep"
)

// Process is one life of a member.
type Process struct {
	*Life
	Data      *datadir.Data
	Node      *node.Node
	Snapshots *Snapshots
	Clients   *Clients
	hub       *watch.Hub
	auto      bool // whether to offer is decided by what it gains
	observe   func(event raft.Event)
	configure func(inForce raft.ConfigInForce)

	stores    datadir.Stores // the store that counts, as in a member
	leads     bool
	loop      loop
	distances distances
	log       logWriter
	applying  applying
	applied   applied
	leases    *leases
	cleaner   cleaner
}

// New begins a life with what is on the disk. It does nothing by itself before Start.
func New(life *Life, data *datadir.Data, o *Options) (*Process, error) {
	p := &Process{
		Life: life, Data: data, hub: data.Machine.Hub(), auto: o.FastPath == offers.Auto,
		observe: o.Observe, configure: o.Configure,
	}
	put := p.loop.Put
	p.loop = loop{Life: life, mute: o.Mute, stepped: o.Stepped}
	p.loop.ticks = node.NewTicks(life.Clock(), life.Pace.Tick, o.Most)
	p.loop.timer = timer{Life: life, fire: p.loop.Wake}
	p.distances = distances{Life: life}
	p.log = logWriter{Life: life, data: data, put: put, faults: o.Log, core: func() *raft.Replica { return p.Node.Replica() }}
	p.log.writer = p.log.newWriter()
	p.stores.Set(data.Generation)
	scrubber := upkeep.NewScrubber(&p.stores, upkeep.ScrubPace{Keys: 1 + life.Rng.IntN(200)})
	reclaimer := upkeep.NewReclaimer(&p.stores, nil, reclaimPace, slog.New(slog.DiscardHandler))
	p.cleaner = cleaner{Life: life, data: data, put: put, scrubber: scrubber, reclaimer: reclaimer}
	p.leases = newLeases(life, &p.stores, o, p.Leads)
	p.leases.wake, p.leases.propose = p.loop.Wake, p.revoke
	p.Snapshots = newSnapshots(life, data, &p.stores, o.Carry)
	p.Snapshots.put = put
	p.applied = applied{Life: life, data: data, altered: o.Altered}
	p.applying = applying{Life: life, applier: p.newApplier(scrubber)}
	p.Clients = &Clients{
		Life: life, data: data, leases: p.leases.revoker, put: put, wake: p.loop.Wake, recall: p.applied.recall,
		fast: o.FastPath != offers.Never, native: map[consensus.MemberID][]*listener{},
	}
	life.Suite.Recovered(life.ID, data.Restored.Hard, data.Restored.Base, data.Restored.Entries, data.Restored.Applied)
	life.Suite.RecoveredRecords(life.ID, data.Restored.Records)
	life.Suite.Restarted(life.ID, data.Restored.Records)
	life.Suite.Offers.Began(life.ID)
	life.Suite.SentOnce.Started(life.ID)
	life.Actions.Started(data.Restored.Hard, data.Restored.Base.Position, data.Restored.Entries)
	core := o.Raft
	core.Fast = raft.FastOptions{
		Footprint: kv.PayloadFootprint, Revises: kv.Revises,
		State: func(id consensus.ProposalID) fast.ProposalState { return node.StateOf(p.stores.Latest(), id) },
	}
	body, err := node.New(node.Options{
		Raft: core, FirstSession: data.Boots << 32, RetryTicks: 3 * core.ElectionTicks,
		FastPath: o.FastPath, OfferFaults: o.Offers, CommitDelay: o.Delay,
	}, data.Restored, p.ports())
	if err != nil {
		return nil, err
	}
	p.Node, p.loop.node, p.applied.node, p.Clients.node, p.distances.node = body, body, body, body, body
	return p, nil
}

// newApplier makes the applier that members have, which tells the checkers what it does.
func (p *Process) newApplier(scrubber *upkeep.Scrubber) *applier.Applier {
	later := func(f func()) { p.After(dice.Exponential(p.Rng, p.Pace.Apply), f) }
	return applier.New(applier.Options{
		Data: p.Data, Stores: &p.stores, Received: p.Snapshots.receiver, Leases: p.leases.revoker, Scrubber: scrubber,
		Logger: discard,
		Retainer: upkeep.NewRetainer(upkeep.RetainerOptions{
			Retention: upkeep.Retention{
				CatchUpEntries: int(p.Pace.Keep), Slack: int(p.Pace.Keep), CatchUpBytes: keptBytes, FlushBytes: keptBytes,
			},
			Compact:    func(to consensus.Index) { p.Put(raft.Compact{Index: to}) },
			Background: later,
			Fail:       p.Fail,
		}),
		Apply: p.applied.apply, Applied: p.applied.batch, Restored: p.applied.restored, NotInstalled: p.applied.notInstalled,
		Put: p.loop.Put, Background: later, MaxEntries: func() int { return 1 + p.Rng.IntN(64) },
	})
}

// keptBytes of the log are kept for others, so few that a run reaches the bound.
const keptBytes = 64 << 10

// tell tells the applier who leads, and the machine what else happens.
func (p *Process) tell(events []raft.Event) {
	for _, event := range events {
		p.observe(event)
		switch e := event.(type) {
		case raft.BecameLeader:
			p.leads = true
			p.applying.do(applier.Work{Lead: &applier.Leadership{Leads: true, Term: e.Term}})
		case raft.BecameFollower:
			p.leads = false
			p.applying.do(applier.Work{Lead: &applier.Leadership{Term: e.Term}})
		case raft.LeaderChanged:
			p.leads = e.Leader == p.ID
		}
	}
}

// Start lets time pass and the parts do what they do again and again.
func (p *Process) Start() {
	p.committed()
	p.Suite.Stepped(p.ID)
	p.loop.begin()
	p.After(0, p.distances.ping)
	p.cleaner.flushLater()
	p.After(expiry.ScanInterval, p.leases.scan)
}

// BeginScrub lets what compactions made invisible be deleted from time to time.
func (p *Process) BeginScrub() { p.cleaner.scrubLater() }

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
func (p *Process) Leads() bool { return p.leads }

// Hub returns the watch hub.
func (p *Process) Hub() *watch.Hub { return p.hub }

// EnvClock is the machine's clock.
func (p *Process) EnvClock() env.Clock { return clock{p.Life, p.Clock} }

// Writes reports whether a write of the log is under way, FinishWrite ends it at once.
func (p *Process) Writes() bool { return len(p.log.writing) > 0 && !p.log.synced }
func (p *Process) FinishWrite() { _, _ = p.log.writer.Sync(p.log.writing) } // the disk may be about to die

func (p *Process) ports() node.Ports {
	return node.Ports{
		Send:    p.send,
		Persist: p.log.persist,
		Apply: func(entries []consensus.Entry) {
			p.committed()
			p.applying.do(applier.Work{Entries: entries})
		},
		Install:      func(meta consensus.SnapshotMeta) { p.applying.do(applier.Work{Install: &meta}) },
		SendSnapshot: p.Snapshots.send,
		StopSnapshot: p.Snapshots.stop,
		Configure:    p.configure,
		Observe:      p.tell,
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
