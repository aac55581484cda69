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
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/k8s"
)

// lifePlan is what the command line asks for.
type lifePlan struct {
	servers     []cluster.Server
	dir         string
	loads       []lifeLoad
	random      bool
	clients     int
	rounds      int
	compactions int
}

// life measures what puts cost from the call until the versions that they wrote are deleted again.
func life(ctx context.Context, arguments []string) error {
	p, err := parseLife(arguments)
	if err != nil {
		return err
	}
	fmt.Printf("%d clients, %d compactions of history during the puts and one of all after them, %d rounds; %s\n\n",
		p.clients, p.compactions, p.rounds, cluster.Machine())
	var all []figures.Row
	var parts []cluster.WrittenParts
	for round := range p.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, l := range p.loads {
			for _, s := range order {
				f, part, err := p.measure(ctx, s, l)
				if err != nil {
					return errors.Join(fmt.Errorf("%s, %s: %w", s.Name, l, err),
						figures.Report(os.Stdout, cluster.Names(p.servers), all))
				}
				f.Server, f.Round = s.Name, round
				all, parts = append(all, f), append(parts, part)
			}
		}
	}
	fmt.Println()
	return errors.Join(figures.Report(os.Stdout, cluster.Names(p.servers), all), cluster.PrintParts(os.Stdout, parts))
}

// measure does one load on a fresh cluster.
func (p *lifePlan) measure(
	ctx context.Context, s cluster.Server, l lifeLoad,
) (f figures.Row, parts cluster.WrittenParts, err error) {
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return f, parts, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	workers, err := load.Open(ctx, c, p.clients)
	if err != nil {
		return f, parts, err
	}
	defer func() { err = errors.Join(err, load.Close(workers)) }()
	run := newLifeRun(c, workers, l, p.random)
	if err := run.fill(ctx); err != nil {
		return f, parts, err
	}
	if err := c.Settle(ctx); err != nil {
		return f, parts, err
	}
	meters := c.Meter(p.dir)
	meters.Open()
	took, err := run.puts(ctx, p.compactions)
	if err == nil {
		err = run.forgetAll(ctx)
	}
	if err == nil {
		err = c.Settle(ctx)
	}
	if err != nil {
		return f, parts, err
	}
	meters.Close()
	f = figures.NewRow(l.String())
	meters.Charge(&f, float64(l.puts))
	f.Set(figures.PerSecond, float64(l.puts)/took.Seconds())
	f.Set(figures.MedianMillis, figures.Millis(run.times.Quantile(0.50)))
	f.Set(figures.P99Millis, figures.Millis(run.times.Quantile(0.99)))
	f.Set(figures.MaxMillis, figures.Millis(run.times.Longest()))
	f.Set(figures.DeviceBytes, f.Values[figures.DeviceMiB]*(1<<20)/float64(l.puts))
	f.Set(figures.LowestSecond, run.seconds.lowest())
	fmt.Printf("%s %s, %s: puts in each second, * where a compaction began:\n  %s\n", time.Now().Format(time.TimeOnly),
		s.Name, l, &run.seconds)
	return f, meters.Parts(s.Name+", "+l.String(), float64(l.puts)), nil
}

func parseLife(arguments []string) (*lifePlan, error) {
	p := &lifePlan{}
	var values string
	flags := flag.NewFlagSet("life", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.Func("load", "SIZE:KEYS:PUTS, so many puts of values of a size over so many keys; repeat it (256:10000:100000 and "+
		"10240:2000:20000)", p.addLoad)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.StringVar(&values, "values", "compressible", "compressible, as protobuf objects are, or random")
	flags.IntVar(&p.clients, "clients", 32, "closed-loop clients")
	flags.IntVar(&p.compactions, "compactions", 8, "compactions of history during the puts")
	flags.IntVar(&p.rounds, "rounds", 1, "rounds; each takes every server once")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if len(p.servers) == 0 || p.dir == "" || min(p.rounds, p.clients, p.compactions) < 1 || flags.NArg() > 0 {
		return nil, errors.New("life: want --server, --dir, at least one round, client and compaction, and nothing but flags")
	}
	if values != "compressible" && values != "random" {
		return nil, fmt.Errorf("life: no --values %q: compressible or random", values)
	}
	p.random = values == "random"
	if len(p.loads) == 0 {
		p.loads = []lifeLoad{{256, 10_000, 100_000}, {10 << 10, 2000, 20_000}}
	}
	return p, nil
}

func (p *lifePlan) addLoad(text string) error {
	var numbers [3]int
	fields := strings.Split(text, ":")
	for i := range fields {
		n, err := strconv.Atoi(fields[i])
		if len(fields) != len(numbers) || err != nil || n < 1 {
			return errors.New("want SIZE:KEYS:PUTS")
		}
		numbers[i] = n
	}
	l := lifeLoad{numbers[0], numbers[1], numbers[2]}
	if l.size < k8s.LeastValue || l.size > mostPod {
		return fmt.Errorf("want values of %d to %d bytes", k8s.LeastValue, mostPod)
	}
	p.loads = append(p.loads, l)
	return nil
}
