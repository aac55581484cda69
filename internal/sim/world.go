package sim

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/actions"
	"github.com/quorate/quorate/internal/sim/breaks"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/kernel"
	"github.com/quorate/quorate/internal/sim/tally"
	"github.com/quorate/quorate/internal/sim/workload"
)

// ErrUnknownNemesis is returned for the name of a fault that there is not.
var ErrUnknownNemesis = errors.New("sim: unknown nemesis")

// ErrUnknownProtocol is returned for the name of a membership protocol that there is not.
var ErrUnknownProtocol = errors.New("sim: unknown protocol")

// ErrUnknownLoad is returned for the name of a load that there is not.
var ErrUnknownLoad = errors.New("sim: unknown load")

var discard = slog.New(slog.DiscardHandler)

// The random streams of a seed. A host has streamHosts plus its slot.
const (
	streamPlan = iota + 1
	streamWorld
	streamNetwork
	streamLoad
	streamNatives
	streamIdentity
	streamPlanIdentity
	streamJobs
	streamHosts = 100
)

// Options say what to run. Seed decides everything that is zero.
type Options struct {
	Seed     uint64
	Members  int
	Duration time.Duration // of the first phase
	Nemesis  string        // only these, separated by commas; "none" for none; empty: drawn
	Protocol string        // all membership changes by this one; empty: drawn
	Load     string        // LoadReads; empty: drawn
	Break    string        // a negative control, see breaks.All
	Trace    io.Writer
	Actions  io.Writer // what the cores do, for package model/trace
}

// Report is what a run gave.
type Report struct {
	Seed       uint64
	Plan       string
	Simulated  time.Duration
	Counts     tally.Counts
	Violations []check.Violation
	TraceLines uint64
	TraceSum   uint64
}

// hastyClients is how many native clients there are if they count wrong.
const hastyClients = 6

// World is one simulated cluster.
type World struct {
	kernel.Schedule
	plan      *plan
	broken    breaks.Set
	rng       *rand.Rand
	trace     *diary.Diary
	actions   *actions.Writer // nil if nobody reads them
	suite     *check.Suite
	net       *network
	load      *workload.Load
	counts    tally.Counts
	hosts     map[consensus.MemberID]*host
	list      []*host // by slot
	configs   map[consensus.MemberID]raft.ConfigInForce
	pastIDs   []consensus.ConfigID // of every configuration that was in force at some member
	lives     int
	altered   func([]consensus.Entry) []consensus.Entry // a negative control: what is applied instead of a batch; nil: itself
	calm      bool                                      // the first phase is over
	current   *host                                     // whose code runs: for panics
	spoil     *rand.Rand                                // of the faults of identity
	survivors []*host                                   // of a lost quorum, recovered
	refusing  bool                                      // most disks are lost: nothing may serve
}

// Run runs one seed to its end or to the first violation.
func Run(o Options) (Report, error) {
	w, err := newWorld(o)
	if err != nil {
		return Report{}, err
	}
	w.guarded(w.faultyPhase)
	switch {
	case len(w.survivors) > 0:
		w.guarded(w.recoveredPhase)
	case w.refusing:
		w.guarded(w.refusalPhase)
	default:
		w.guarded(w.calmPhase)
	}
	if !w.refusing { // of what was lost nothing can be said
		w.guarded(w.suite.Finish)
	}
	w.counts.Load(w.load)
	w.counts.Jobs = w.suite.Jobs.Done()
	w.counts.Duplicates, w.counts.Fast, w.counts.Skipped = w.suite.Duplicates, w.suite.Fast, w.suite.Skipped
	w.tallyChanges()
	for _, h := range w.up() {
		h.noteInferred()
	}
	return Report{
		Seed: o.Seed, Plan: w.plan.String(), Simulated: w.Now(), Counts: w.counts,
		Violations: w.suite.Violations, TraceLines: w.trace.Lines, TraceSum: w.trace.Sum.Sum64(),
	}, nil
}

func newWorld(o Options) (*World, error) {
	p, err := drawPlan(&o, dice.Stream(o.Seed, streamPlan))
	if err != nil {
		return nil, err
	}
	w := &World{
		plan: p, rng: dice.Stream(o.Seed, streamWorld), spoil: dice.Stream(o.Seed, streamIdentity), trace: diary.New(o.Trace),
		hosts: map[consensus.MemberID]*host{}, configs: map[consensus.MemberID]raft.ConfigInForce{},
	}
	if w.broken, err = breaks.Named(o.Break); err != nil {
		return nil, err
	}
	p.mix.LoseEvents = w.broken.Watch
	if w.broken.Sessions {
		w.altered = unnamed{}.alter
	}
	if o.Break == "" || w.broken.Sessions { // other controls need few seeds, and keep those that they were found with
		rng := dice.Stream(o.Seed, streamNatives)
		p.mix.Natives = dice.Pick(rng, 0, 0, 1, 3)
		p.mix.Direct = dice.Chance(rng, 0.6)
	}
	if w.broken.Client {
		p.mix.Natives, p.mix.Direct, p.mix.Tally.OneLess = hastyClients, true, true
	}
	w.counts.Faults = map[string]uint64{}
	w.net = &network{w: w, rng: dice.Stream(o.Seed, streamNetwork), weather: p.weather, links: map[[2]int]*link{},
		clients: map[consensus.MemberID]func(consensus.Message){}, astray: map[consensus.MemberID]*host{}}
	base := firstConfig(p.members)
	w.suite = check.NewSuite(w.Now, base)
	w.suite.Jobs.Alone = p.jobsAlone()
	w.suite.Leases.ClockDrift(p.drift)
	w.actions = actions.New(o.Actions, w.Now, func(err error) { w.suite.Report("trace", fmt.Sprintf("actions: %v", err)) })
	w.actions.Begin(base.Config.Voters)
	for i := range p.members {
		h := w.addHost(o.Seed, base.Config.Members[i].ID, base)
		w.After(p.begins(i, w.spoil), h.start)
	}
	w.After(cureScan, w.foundAgain)
	w.load = workload.Start(clients{w}, w.suite, p.mix, dice.Stream(o.Seed, streamLoad))
	for _, n := range p.nemeses {
		w.unleash(n, w.rng)
	}
	for _, n := range p.disks {
		w.unleash(n, w.spoil)
	}
	return w, nil
}

// firstConfig is what a cluster of n voters begins with, before the first entry of the log.
func firstConfig(n int) consensus.SnapshotMeta {
	var config consensus.Config
	for i := range n {
		m := describeMember(i)
		config.Voters = append(config.Voters, m.ID)
		config.Members = append(config.Members, m)
	}
	return consensus.Founding(config)
}

func describeMember(slot int) consensus.Member { return changes.Describe(consensus.MemberID(slot + 1)) }

// addHost adds a machine that is not running yet.
func (w *World) addHost(seed uint64, id consensus.MemberID, base consensus.SnapshotMeta) *host {
	h := w.addMachine(seed, id, base)
	w.hosts[id] = h
	return h
}

// addMachine does so for a process that no address leads to.
func (w *World) addMachine(seed uint64, id consensus.MemberID, base consensus.SnapshotMeta) *host {
	slot := len(w.list)
	rng := dice.Stream(seed, uint64(streamHosts+slot))
	h := &host{w: w, slot: slot, id: id, base: base, rng: rng, disk: newDisk(&w.broken), suite: w.suite, rate: 1,
		actions: w.actions.Member(id)}
	h.rate += w.plan.drift * (2*rng.Float64() - 1)
	w.list = append(w.list, h)
	return h
}

// guarded turns a panic, which would end a real process, into a violation.
func (w *World) guarded(f func()) {
	if w.suite.Failed() {
		return
	}
	defer func() {
		if why := recover(); why != nil {
			slot := -1
			if w.current != nil {
				slot = w.current.slot
			}
			w.suite.Report("invariant", fmt.Sprintf("member in slot %d: %v\n%s", slot, why, diary.Stack()))
		}
	}()
	f()
}

// runUntil lets the world go on until a time, a condition, or a violation.
func (w *World) runUntil(end time.Duration, done func() bool) bool {
	for !w.suite.Failed() {
		do := w.Next(end)
		if do == nil {
			break
		}
		do()
		w.counts.Events++
		if done != nil && w.counts.Events%64 == 0 && done() {
			return true
		}
	}
	if !w.suite.Failed() {
		w.Pass(end) // whatever comes next comes later
	}
	return done != nil && done()
}

func (w *World) faultyPhase() {
	w.sample()
	w.runUntil(w.plan.faults, nil)
}

// sample compares, from time to time, what members that run say of the past.
func (w *World) sample() {
	w.After(5*time.Second, w.sample)
	w.compareHashes()
}

// compareHashes hashes all stores at the newest revision that every running member has, and asks each for the
// configuration that it stored.
func (w *World) compareHashes() {
	up := w.up()
	if len(up) == 0 {
		return
	}
	least := up[0].proc.Data.Machine.Store().Revision()
	for _, h := range up {
		least = min(least, h.proc.Data.Machine.Store().Revision())
	}
	for _, h := range up {
		var gone []consensus.MemberID
		for _, tomb := range h.proc.Data.Machine.Tombstones() {
			gone = append(gone, tomb.Member)
		}
		meta := h.proc.Data.Machine.SnapshotMeta()
		w.suite.Stored(h.id, &meta, gone)
		store := h.proc.Data.Machine.Store()
		if store.CompactRevision() >= least {
			continue
		}
		hash, compacted, _, err := store.HashKV(least)
		if err != nil {
			w.suite.Report("state-machine", fmt.Sprintf("member %v cannot hash revision %d: %v", h.id, least, err))
			return
		}
		w.suite.Hashed(h.id, least, compacted, hash)
	}
}

// up returns the hosts whose process runs, by slot.
func (w *World) up() []*host {
	var up []*host
	for _, h := range w.list {
		if h.alive && h.proc != nil && h.impostor == "" {
			up = append(up, h)
		}
	}
	return up
}

// present returns the members' hosts that were not removed.
func (w *World) present() []*host {
	return slices.DeleteFunc(slices.Clone(w.list), func(h *host) bool { return h.gone || h.impostor != "" })
}

// clients is the world as package workload sees it.
type clients struct{ *World }

// Targets implements workload.World.
func (c clients) Targets() []workload.Target {
	present := c.present()
	targets := make([]workload.Target, len(present))
	for i, h := range present {
		targets[i] = target{h}
	}
	return targets
}
