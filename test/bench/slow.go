package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// think is how long a client of slow waits between two operations: what is looked for is who waits for a disk, not what the
// cores can do.
const think = 10 * time.Millisecond

// whose are the members whose disks may be slow.
var whose = []string{"none", "follower", "leader", "all"}

// slowDisks has writers and readers while the syncs of some members take long. Each time of a sync has a fresh cluster: what
// was written before does not weigh on the next.
func slowDisks(f *flags) func() ([]trial, error) {
	w := f.window()
	syncs := take(f, "sync", "20ms,120ms", "how much longer each sync of a slow disk takes",
		listOf(within(time.ParseDuration, 1, time.Hour)))
	slow := f.choices("slow", strings.Join(whose, ","), "whose disks are slow, one after the other", whose)
	clients := f.number("clients", "12", "writers, and as many readers, round robin over the members", 1, math.MaxInt)
	return func() (all []trial, err error) {
		for i, each := range *syncs {
			for _, name := range *slow {
				if name == "none" && i > 0 {
					continue // it does not depend on the time
				}
				s := slowRun{whose: name, each: each, clients: *clients, window: w}
				all = append(all, trial{name: "slow disks: " + s.String(), filled: true,
					on: cluster.Conditions{SlowDisks: true}, do: s.measure})
			}
		}
		return all, nil
	}
}

// slowRun is members of whom some have slow disks.
type slowRun struct {
	whose   string
	each    time.Duration
	clients int
	window
}

// String implements fmt.Stringer.
func (p *slowRun) String() string {
	if p.whose == "none" {
		return p.whose
	}
	return fmt.Sprintf("%s %s", p.whose, p.each)
}

// measure measures a cluster of which the named members' disks are slow.
func (p *slowRun) measure(ctx context.Context, b *bed) (all []figures.Row, err error) {
	c, name := b.Cluster, p.whose
	leader, err := c.Leader(ctx)
	if err != nil {
		return nil, err
	}
	follower := c.Members[0]
	if follower == leader {
		follower = c.Members[1]
	}
	var kinds [2][]*load.Worker // writers and readers
	for i := range kinds {
		if kinds[i], err = load.Open(ctx, c, p.clients); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, load.Close(kinds[i])) }()
		for _, w := range kinds[i] {
			w.Rest = think
		}
	}
	isSlow := make([]bool, len(c.Members))
	for i, m := range c.Members {
		if isSlow[i] = name == "all" || name == "leader" && m == leader || name == "follower" && m == follower; isSlow[i] {
			m.Disk.Delay(p.each)
		}
	}
	from, to, changes := p.load(ctx, c, kinds)
	for i, operation := range []string{"put", "range"} {
		for _, there := range []bool{false, true} { // at the members whose disks are slow
			of := slices.DeleteFunc(slices.Clone(kinds[i]), func(w *load.Worker) bool {
				return isSlow[w.Number%len(isSlow)] != there
			})
			if len(of) == 0 {
				continue
			}
			row := fmt.Sprintf("%s: %s", p, operation)
			if there && name != "all" {
				row += " there"
			}
			f := figures.NewRow(row)
			load.Latencies(&f, from, to, of)
			f.Set(figures.Elections, float64(changes))
			all = append(all, f)
		}
	}
	return all, nil
}

// load runs writers and readers, and afterwards makes all disks fast, so that they end soon.
func (p *slowRun) load(
	ctx context.Context, c *cluster.Cluster, kinds [2][]*load.Worker,
) (from, to cluster.Reading, changes int) {
	var phase atomic.Int32
	var group sync.WaitGroup
	changed := c.CountElections(ctx)
	group.Go(load.StartLoop(ctx, kinds[0], load.Put, &phase))
	group.Go(load.StartLoop(ctx, kinds[1], load.Get, &phase))
	from, to = load.Window(ctx, c, &phase, *p.warm, *p.length)
	for _, m := range c.Members {
		m.Disk.Delay(0)
	}
	group.Wait()
	return from, to, changed()
}
