package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
)

const (
	narrowLimit  = 10 * time.Minute // of one scenario, and what its snapshot takes
	narrowSettle = 3 * time.Second
)

// narrowPlan is what the flags of narrow say.
type narrowPlan struct {
	servers     []cluster.Server
	dir         string
	rates       []float64 // 10^6 bytes a second of each link, each way
	scenarios   []string
	trip        time.Duration
	snapshotMiB int
}

// scenarios do something to a cluster whose links are still wide, and return what to do to it once they are narrow.
var scenarios = []struct {
	name string
	run  func(ctx context.Context, r *narrowRun) error
}{
	{"burst 7 MiB", func(ctx context.Context, r *narrowRun) error { return r.burst(ctx, 7<<20, nil) }},
	{"burst 64 MiB", func(ctx context.Context, r *narrowRun) error { return r.burst(ctx, 64<<20, nil) }},
	{"burst 7 MiB, kill the leader", func(ctx context.Context, r *narrowRun) error { return r.burst(ctx, 7<<20, r.leader) }},
	{"lag 24 MiB", func(ctx context.Context, r *narrowRun) error { return r.lag(ctx, false) }},
	{"lag 24 MiB, kill the other", func(ctx context.Context, r *narrowRun) error { return r.lag(ctx, true) }},
	{"snapshot", func(ctx context.Context, r *narrowRun) error { return r.snapshot(ctx) }},
}

// narrow measures what becomes of small puts, and of the links, while much has to go over narrow links between members.
func narrow(ctx context.Context, arguments []string) error {
	p, err := parseNarrow(arguments)
	if err != nil {
		return err
	}
	fmt.Printf("three members, every link between two of them narrow in each direction, round trip %s; a small put every %s, "+
		"round robin over the members; %s\n\n", p.trip, smallEvery, cluster.Machine())
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "scenario\tMB/s\tserver\tsmall p50 ms\tp99 ms\tmax ms\tfailed\tp99 of queue\tgap s\tqueue s\t"+
		"busiest links\tothers MiB\tdone s\tquiet s\t")
	for _, scenario := range scenarios {
		if !slices.Contains(p.scenarios, scenario.name) {
			continue
		}
		for _, rate := range p.rates {
			for _, s := range p.servers {
				fmt.Fprintf(os.Stderr, "%s %s, %g MB/s: %s\n", time.Now().Format(time.TimeOnly), scenario.name, rate, s.Name)
				if err := p.measure(ctx, s, scenario.name, rate, scenario.run, table); err != nil {
					return errors.Join(fmt.Errorf("%s, %g MB/s, %s: %w", scenario.name, rate, s.Name, err), table.Flush())
				}
			}
		}
	}
	return table.Flush()
}

func parseNarrow(arguments []string) (*narrowPlan, error) {
	p := &narrowPlan{}
	var rates, chosen string
	var all []string
	for _, each := range scenarios {
		all = append(all, each.name)
	}
	flags := flag.NewFlagSet("narrow", flag.ContinueOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.Func("flags", "NAME=FLAG,FLAG for the members of one server", serverFlags(&p.servers))
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs")
	flags.StringVar(&rates, "rates", "1,4,12", "10^6 bytes a second of each link, with commas between")
	flags.StringVar(&chosen, "scenarios", strings.Join(all, ";"), "what happens, with semicolons between")
	flags.DurationVar(&p.trip, "trip", 20*time.Millisecond, "round trip between any two members")
	flags.IntVar(&p.snapshotMiB, "snapshot", 64, "MiB of the snapshot, up to 1024")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(rates, ",") {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || rate < 0.1 || rate > 1000 {
			return nil, fmt.Errorf("narrow: --rates: %q is no number from 0.1 to 1000", text)
		}
		p.rates = append(p.rates, rate)
	}
	p.scenarios = strings.Split(chosen, ";")
	for _, name := range p.scenarios {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("narrow: --scenarios: %q is none of %s", name, strings.Join(all, "; "))
		}
	}
	if len(p.servers) == 0 || p.dir == "" || p.snapshotMiB < 1 || p.snapshotMiB > 1024 || p.trip < 0 || flags.NArg() > 0 {
		return nil, errors.New("narrow: want --server and --dir, a --snapshot of 1 to 1024, and nothing but flags")
	}
	return p, nil
}

// measure runs one scenario on a fresh cluster, and prints its line.
func (p *narrowPlan) measure(
	ctx context.Context, s cluster.Server, name string, rate float64, run func(context.Context, *narrowRun) error,
	table *tabwriter.Writer,
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, narrowLimit+time.Duration(float64(p.snapshotMiB<<20)/rate)*time.Microsecond*2)
	defer cancel()
	l, err := startLinked(ctx, s, p.dir, 3, func(int, int) time.Duration { return p.trip / 2 })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove()) }()
	r := &narrowRun{linked: l, rate: int64(rate * 1e6), trip: p.trip, snapshotMiB: p.snapshotMiB}
	if r.leader, err = l.Leader(ctx); err != nil {
		return err
	}
	cluster.Pause(ctx, narrowSettle) // members measure how far they are from each other
	if err := run(ctx, r); err != nil {
		return err
	}
	r.print(table, fmt.Sprintf("%s\t%g\t%s", name, rate, s.Name))
	return nil
}
