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
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
)

// measure runs all rounds and prints the report, also of the rounds before one that failed.
func measure(ctx context.Context, arguments []string) error {
	p, err := parsePlan(arguments)
	if err != nil {
		return err
	}
	var all []figures.Row
	fmt.Printf("%s; %d rounds of %s after %s; clients %v; %s\n\n", strings.Join(p.workloads, ", "), p.rounds, p.length,
		p.warm, p.clients, cluster.Machine())
	for round := range p.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			fmt.Fprintf(os.Stderr, "%s round %d: %s\n", time.Now().Format(time.TimeOnly), round+1, s.Name)
			var got []figures.Row
			got, err = p.runServer(ctx, s)
			for i := range got {
				got[i].Server, got[i].Round = s.Name, round
			}
			all = append(all, got...)
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", s.Name, err), figures.Report(os.Stdout, cluster.Names(p.servers), all))
			}
		}
	}
	return figures.Report(os.Stdout, cluster.Names(p.servers), all)
}

// runServer runs all workloads once: what shares a cluster first, then what needs one of its own.
func (p *plan) runServer(ctx context.Context, s cluster.Server) (all []figures.Row, err error) {
	shared := slices.DeleteFunc(slices.Clone(p.workloads), func(w string) bool { return episodes[w] != nil })
	if len(shared) > 0 {
		if all, err = p.runShared(ctx, s, shared); err != nil {
			return all, err
		}
	}
	for _, workload := range p.workloads {
		if episode := episodes[workload]; episode != nil {
			got, err := episode(ctx, p, s)
			if err != nil {
				return all, fmt.Errorf("%s: %w", workload, err)
			}
			all = append(all, got...)
		}
	}
	return all, nil
}

func (p *plan) runShared(ctx context.Context, s cluster.Server, workloads []string) (all []figures.Row, err error) {
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	if err := load.Fill(ctx, c, load.KeyCount, load.KeyAt); err != nil {
		return nil, err
	}
	for _, workload := range workloads {
		for _, clients := range p.clients {
			f, err := closed(ctx, c, p, workload, clients)
			if err != nil {
				return all, fmt.Errorf("%s: %w", workload, err)
			}
			all = append(all, f)
		}
	}
	return all, nil
}

func parsePlan(arguments []string) (*plan, error) {
	p := &plan{}
	var workloads, clients, watchers string
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.StringVar(&workloads, "workloads", "put,range,txn,mixed,watch",
		"of put, range, txn, mixed, watch, range-1000, stream-100000, lease-grant, keepalive, keepalive-100, expiry, memory, "+
			"start, kill-leader")
	flags.StringVar(&clients, "clients", "1,64,256", "numbers of closed-loop clients")
	flags.StringVar(&watchers, "watchers", "1000", "watch: numbers of watchers of one key")
	flags.IntVar(&p.watchStreams, "streams", 50, "watch: streams that the watchers share, each on its connection")
	flags.IntVar(&p.rounds, "rounds", 3, "rounds; each takes every server once")
	flags.IntVar(&p.values, "values", 1_000_000, "memory: how many values of 256 bytes to write")
	flags.IntVar(&p.snapshotMiB, "snapshot", 1024, "learner-snapshot: MiB of values of 16 KiB to write first")
	flags.IntVar(&p.expiry.leases, "leases", 10_000, "expiry: leases that end together")
	flags.IntVar(&p.expiry.keys, "lease-keys", 1, "expiry: keys of each")
	flags.DurationVar(&p.expiry.after, "expire-after", 25*time.Second, "expiry: when they end; all must be granted by then")
	flags.DurationVar(&p.length, "duration", 5*time.Second, "of one measurement")
	flags.DurationVar(&p.warm, "warmup", 2*time.Second, "before each measurement")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if len(p.servers) == 0 || p.dir == "" || p.rounds < 1 || p.watchStreams < 1 || flags.NArg() > 0 {
		return nil, errors.New("want --server and --dir, at least one round and stream, and nothing but flags")
	}
	p.workloads = strings.Split(workloads, ",")
	for _, workload := range p.workloads {
		if load.Operations[workload] == nil && episodes[workload] == nil {
			return nil, fmt.Errorf("no workload %q", workload)
		}
	}
	var err, watchersErr error
	p.clients, err = parseNumbers(clients)
	p.watchers, watchersErr = parseNumbers(watchers)
	return p, errors.Join(err, watchersErr)
}

func parseNumbers(list string) (numbers []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("no number of clients: %q", text)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
