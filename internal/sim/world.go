package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/sim/actions"
	"github.com/quorate/quorate/internal/sim/breaks"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/plan"
	"github.com/quorate/quorate/internal/sim/stores"
	"github.com/quorate/quorate/internal/sim/users"
	"github.com/quorate/quorate/internal/sim/workload"
)

// hastyClients is the number of native clients if they count wrong.
const hastyClients = 6

// maxEvents ends a run that does not come to its end: the longest runs of all faults have a hundredth of it.
const maxEvents = 20_000_000

// World is one simulated cluster, with its clients and faults, phase by phase.
type World struct {
	run       *run
	cluster   *cluster
	load      *workload.Load
	root      *users.Operator // nil in worlds without users
	faults    *faults
	addresses *addressFaults
	disks     *diskFaults
	operators *operators
	returns   *downgrades // nil in worlds without downgrades
}

// Run runs one seed to its end or to the first violation.
func Run(o Options) (Report, error) {
	w, err := newWorld(o)
	if err != nil {
		return Report{}, err
	}
	defer w.run.stores.Close()
	defer w.run.routines.End()
	w.guarded(w.faultyPhase)
	switch {
	case len(w.cluster.survivors) > 0:
		w.guarded(w.recoveredPhase)
	case w.run.refusing:
		w.guarded(w.refusalPhase)
	default:
		w.guarded(w.calmPhase)
	}
	if !w.run.refusing { // nothing can be checked about data that was lost
		w.guarded(w.run.suite.Finish)
	}
	counts, suite := &w.run.counts, w.run.suite
	counts.Load(w.load)
	counts.Jobs, counts.Stamped = suite.Jobs.Done(), suite.Offers.Stamped
	counts.Sent, counts.Again, counts.InVain = suite.SentOnce.Bytes, suite.SentOnce.Again, suite.SentOnce.InVain
	counts.LeaseParts = suite.Leases.Parts
	counts.Duplicates, counts.Fast, counts.Skipped = suite.Duplicates, suite.Fast, suite.Skipped
	w.tallyChanges()
	for _, h := range w.cluster.up() {
		h.noteInferred()
	}
	return Report{
		Seed: o.Seed, Plan: w.run.plan.String(), Simulated: w.run.Now(), Counts: w.run.counts,
		Violations: w.run.suite.Violations, TraceLines: w.run.trace.Lines, TraceSum: w.run.trace.Sum.Sum64(),
	}, nil
}

func newWorld(o Options) (*World, error) {
	p, err := plan.Draw(&plan.Options{
		Members: o.Members, Duration: o.Duration, Nemesis: o.Nemesis, Protocol: o.Protocol, Load: o.Load, Broken: o.Break != "",
	}, plan.Streams{
		Plan: dice.Stream(o.Seed, streamPlan), Identity: dice.Stream(o.Seed, streamPlanIdentity),
		Named: dice.Stream(o.Seed, streamJobs),
	})
	if err != nil {
		return nil, err
	}
	r := &run{
		plan: p, rng: dice.Stream(o.Seed, streamWorld),
		spoil: dice.Stream(o.Seed, streamIdentity), chance: dice.Stream(o.Seed, streamOperators),
		users: dice.Stream(o.Seed, streamUsers), lies: dice.Stream(o.Seed, streamStrangers),
		places: dice.Stream(o.Seed, streamPlaces),
		trace:  diary.New(o.Trace), mostEvents: maxEvents,
	}
	if r.broken, err = breaks.Named(o.Break); err != nil {
		return nil, err
	}
	if r.stores, err = stores.New(o.Engine, r.broken.LyingEngine, o.Encrypts); err != nil {
		return nil, err
	}
	r.breakLoad(&o)
	r.counts.Faults = map[string]uint64{}
	c := newCluster(r, dice.Stream(o.Seed, streamNetwork))
	w := &World{run: r, cluster: c, faults: &faults{r, c, r.rng}, operators: &operators{run: r, cluster: c}}
	w.disks = &diskFaults{r, c, w.operators, r.spoil}
	w.addresses = newAddressFaults(r, c)
	c.changing, c.disowned = w.noticeChange, w.operators.lookAfter
	base := firstConfig(p.Members)
	r.suite = check.NewSuite(r.Now, base)
	r.suite.Leases.ClockDrift(p.Drift)
	r.suite.Leases.EndBytes = r.endBytes()
	r.suite.CountBytes, r.suite.MostHeads = limitCountBytes, mostHeads
	r.suite.Jobs.Drift, r.suite.Jobs.MaxPerHour = p.Drift, p.CareBudget
	r.joins.Report = r.suite.Report
	r.actions = actions.New(o.Actions, r.Now, func(err error) {
		r.suite.Report("trace", fmt.Sprintf("actions: %v", err))
	})
	r.actions.Begin(base.Config.Voters)
	for i := range p.Members {
		h := c.addHost(o.Seed, base.Config.Members[i].ID, base)
		drawBuild(h)
		r.After(p.Begins(i, r.spoil), h.start)
	}
	r.After(cureScan, w.operators.foundAgain)
	w.startUsers()
	w.startSoaks()
	w.startDowngrades(o.Seed)
	w.startBackups(o.Seed)
	w.load = workload.Start(surroundings{r, c}, r.suite, r.plan.Mix, dice.Stream(o.Seed, streamLoad))
	r.load = w.load
	w.unleashAll()
	return w, nil
}

// unleashAll begins what the plan does to the world.
func (w *World) unleashAll() {
	r, p := w.run, w.run.plan
	for _, n := range p.Named {
		chance := r.chance
		if n.Name == "strangers" || n.Name == "impatient" { // no other draw depends on theirs
			chance = r.lies
		}
		if n.Name == "move" || n.Name == "mistype" {
			chance = r.places
		}
		w.unleash(n, chance)
	}
	for _, n := range p.Nemeses {
		w.unleash(n, r.rng)
	}
	for _, n := range p.Disks {
		w.unleash(n, r.spoil)
	}
}

// breakLoad applies the negative controls to the load.
func (r *run) breakLoad(o *Options) {
	m := &r.plan.Mix
	m.LoseEvents = r.broken.Watch
	if r.broken.Sessions {
		r.altered = breaks.Unnamed{}.Alter
	}
	if o.Break == "" || r.broken.Sessions { // other controls need few seeds, and keep those with which they were found
		rng := dice.Stream(o.Seed, streamNatives)
		m.Natives = dice.Pick(rng, 0, 0, 1, 3)
		m.Direct = dice.Chance(rng, 0.6)
		m.Thief = true
	}
	if m.Owners = r.broken.Streams.Owners; m.Owners.IDInKey {
		m.Natives, m.Thief = 1, true
	}
	if r.broken.Streams.LosesRest || r.broken.Streams.KeepsTurns || r.broken.Untold || r.broken.KeepsSilent {
		m.Natives = 3
	}
	if r.broken.Stays {
		m.Natives, m.Stays = 3, true
	}
	if r.broken.RemovedUntold {
		r.plan.SwitchOff = false
	}
	if r.broken.Client {
		m.Natives, m.Direct, m.Tally.SuperquorumLess = hastyClients, true, true
	}
}

// guarded turns a panic, which would end a real process, into a violation.
func (w *World) guarded(f func()) {
	if w.run.suite.Failed() {
		return
	}
	defer func() {
		if why := recover(); why != nil {
			slot := -1
			if w.run.current != nil {
				slot = w.run.current.slot
			}
			w.run.suite.Report("invariant", fmt.Sprintf("member in slot %d: %v\n%s", slot, why, diary.Stack()))
		}
	}()
	f()
}

// runUntil runs the world until a time, a condition, or a violation.
func (w *World) runUntil(end time.Duration, done func() bool) bool {
	for !w.run.suite.Failed() {
		do := w.run.Next(end)
		if do == nil {
			break
		}
		do()
		w.run.counts.Events++
		if w.run.counts.Events >= w.run.mostEvents {
			w.run.suite.Report("harness", fmt.Sprintf("not ended after %d events", w.run.mostEvents))
		}
		if done != nil && w.run.counts.Events%64 == 0 && done() {
			return true
		}
	}
	if !w.run.suite.Failed() {
		w.run.Pass(end) // the next event comes later
	}
	return done != nil && done()
}

func (w *World) faultyPhase() {
	w.sample()
	w.runUntil(w.run.plan.Faults, nil)
}

// sample compares, from time to time, the answers of running members about earlier revisions.
func (w *World) sample() {
	w.run.After(5*time.Second, w.sample)
	w.cluster.compareHashes()
}
