package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// think is how long a client of slow waits between two operations: what is looked for is who waits for a disk, not what the
// cores can do.
const think = 10 * time.Millisecond

// slowPlan is what the flags of slow say.
type slowPlan struct {
	servers      []cluster.Server
	dir          string
	syncs        []time.Duration
	slow         []string
	clients      int
	rounds       int
	warm, length time.Duration
}

// whose are the members whose disks may be slow.
var whose = []string{"none", "follower", "leader", "all"}

// slow measures writes and linearizable reads while the syncs of some members take long.
func slow(ctx context.Context, arguments []string) error {
	p, err := parseSlow(arguments)
	if err != nil {
		return err
	}
	fmt.Printf("three members, %d writers and as many readers, each pauses %s; %d rounds of %s after %s; %s\n\n", p.clients,
		think, p.rounds, p.length, p.warm, cluster.Machine())
	var all []figures.Row
	for round := range p.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			fmt.Fprintf(os.Stderr, "%s round %d: %s\n", time.Now().Format(time.TimeOnly), round+1, s.Name)
			got, err := p.measure(ctx, s)
			for i := range got {
				got[i].Server, got[i].Round = s.Name, round
			}
			if all = append(all, got...); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", s.Name, err), figures.Report(os.Stdout, cluster.Names(p.servers), all))
			}
		}
	}
	return figures.Report(os.Stdout, cluster.Names(p.servers), all)
}

func parseSlow(arguments []string) (*slowPlan, error) {
	p := &slowPlan{}
	var syncs, slow string
	flags := flag.NewFlagSet("slow", flag.ContinueOnError)
	flags.Func("server", "NAME=PATH of a binary that takes etcd's flags; repeat it, the first is the base of ratios",
		func(text string) error {
			name, path, ok := strings.Cut(text, "=")
			p.servers = append(p.servers, cluster.Server{Name: name, Path: path, SlowDisks: true})
			if !ok {
				return errors.New("want NAME=PATH")
			}
			return nil
		})
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs")
	flags.StringVar(&syncs, "sync", "20ms,120ms", "how much longer each sync of a slow disk takes")
	flags.StringVar(&slow, "slow", strings.Join(whose, ","), "whose disks are slow, one after the other")
	flags.IntVar(&p.clients, "clients", 12, "writers, and as many readers, round robin over the members")
	flags.IntVar(&p.rounds, "rounds", 1, "rounds; each takes every server once")
	flags.DurationVar(&p.length, "duration", 5*time.Second, "of one measurement")
	flags.DurationVar(&p.warm, "warmup", 3*time.Second, "before each measurement, with the slow disk")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	p.slow = strings.Split(slow, ",")
	for _, name := range p.slow {
		if !slices.Contains(whose, name) {
			return nil, fmt.Errorf("slow: %q is none of %s", name, strings.Join(whose, ", "))
		}
	}
	for text := range strings.SplitSeq(syncs, ",") {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("slow: --sync: %q is no time", text)
		}
		p.syncs = append(p.syncs, d)
	}
	if len(p.servers) == 0 || p.dir == "" || p.rounds < 1 || p.clients < 1 || flags.NArg() > 0 {
		return nil, errors.New("slow: --server and --dir are needed, --rounds and --clients are positive")
	}
	return p, nil
}

// measure takes a fresh cluster for each time of a sync: what was written before does not weigh on the next.
func (p *slowPlan) measure(ctx context.Context, s cluster.Server) (all []figures.Row, err error) {
	for i, each := range p.syncs {
		for _, name := range p.slow {
			if name == "none" && i > 0 {
				continue // it does not depend on the time
			}
			got, err := p.one(ctx, s, name, each)
			if all = append(all, got...); err != nil {
				return all, fmt.Errorf("%s at %s: %w", name, each, err)
			}
		}
	}
	return all, nil
}

// one measures a cluster of which the named members' disks are slow.
func (p *slowPlan) one(ctx context.Context, s cluster.Server, name string, each time.Duration) (all []figures.Row, err error) {
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	if err := load.Fill(ctx, c, load.KeyCount, load.KeyAt); err != nil {
		return nil, err
	}
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
			m.Disk.Delay(each)
		}
	}
	from, to, changes := p.load(ctx, c, kinds)
	title := name
	if name != "none" {
		title = fmt.Sprintf("%s %s", name, each)
	}
	for i, operation := range []string{"put", "range"} {
		for _, there := range []bool{false, true} { // at the members whose disks are slow
			of := slices.DeleteFunc(slices.Clone(kinds[i]), func(w *load.Worker) bool {
				return isSlow[w.Number%len(isSlow)] != there
			})
			if len(of) == 0 {
				continue
			}
			row := fmt.Sprintf("%s: %s", title, operation)
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
func (p *slowPlan) load(
	ctx context.Context, c *cluster.Cluster, kinds [2][]*load.Worker,
) (from, to cluster.Reading, changes int) {
	var phase atomic.Int32
	var group sync.WaitGroup
	changed := c.CountElections(ctx)
	group.Go(load.StartLoop(ctx, kinds[0], load.Put, &phase))
	group.Go(load.StartLoop(ctx, kinds[1], load.Get, &phase))
	from, to = load.Window(ctx, c, &phase, p.warm, p.length)
	for _, m := range c.Members {
		m.Disk.Delay(0)
	}
	group.Wait()
	return from, to, changed()
}
