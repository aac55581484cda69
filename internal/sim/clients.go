package sim

import (
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/nativeclient"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/kernel"
	"github.com/quorate/quorate/internal/sim/workload"
)

// clockOfClients is the first random stream of clients' clocks, above those of hosts.
const clockOfClients = 1000

// surroundings implement workload.World.
type surroundings struct {
	run     *run
	cluster *cluster
}

// Now implements workload.World.
func (c surroundings) Now() time.Duration { return c.run.Now() }

// After implements workload.World.
func (c surroundings) After(d time.Duration, f func()) { c.run.After(d, f) }

// Targets implements workload.World.
func (c surroundings) Targets() []workload.Target {
	present := c.cluster.present()
	targets := make([]workload.Target, len(present))
	for i, h := range present {
		targets[i] = target{h}
	}
	return targets
}

// At implements workload.World.
func (c surroundings) At(endpoint string) workload.Target {
	for _, h := range c.cluster.list {
		if t := (target{h}); t.Endpoint() == endpoint {
			return t
		}
	}
	return nil
}

// Clock implements workload.World.
func (c surroundings) Clock(client int) func() time.Time {
	rng := dice.Stream(c.run.plan.Raft.Seed, uint64(streamClocks+clockOfClients+client))
	clock := &kernel.Clock{Rate: 1 + c.run.plan.Drift*(2*rng.Float64()-1)}
	if c.run.plan.Skew > 0 && dice.Chance(rng, 0.7) {
		clock.Offset = dice.Between(rng, -c.run.plan.Skew, c.run.plan.Skew)
	}
	return func() time.Time { return clock.At(c.run.Now()) }
}

// Operation implements workload.World.
func (c surroundings) Operation(client int, what string) {
	c.run.trace.Note(c.run.Now(), -1, diary.Operation, uint64(client), 0, 0, func() string { return what })
}

// Answer implements workload.World.
func (c surroundings) Answer(client int, ok bool, revision kv.Revision) {
	answered := uint64(0)
	if ok {
		answered = 1
	}
	c.run.trace.Note(c.run.Now(), -1, diary.Answer, uint64(client), answered, uint64(revision), nil)
}

// nativesFollow waits until each native client has a connection to a member, although the members may have moved away from the
// endpoints that it was given.
func (w *World) nativesFollow() bool {
	connected := func() bool { return !w.load.Adrift() }
	if w.runUntil(w.run.Now()+2*w.patience()+2*nativeclient.ListInterval, connected) {
		return true
	}
	if !w.run.suite.Failed() {
		w.run.suite.Report("client-lost", "a native client finds no member after the faults: "+w.cluster.describe())
	}
	return false
}
