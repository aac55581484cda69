package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage:
  go run . run --server etcd=PATH --server quorate=PATH --dir DIR [flags]   measure; run --help lists the flags
  go run . etcd --out PATH                                                  build the reference etcd
  go run . far --server NAME=PATH --dir DIR [flags]                         writes of a client that is far away; --help
  go run . routes --server PATH --dir DIR [flags]                           how often the fast path decides; --help
`

func main() {
	// The client logs each retry of a request that a killed member took along, which is what we came to see.
	if err := os.Setenv("ETCD_CLIENT_DEBUG", "fatal"); err != nil {
		fail(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(context.Context, []string) error{
		"run": measure, "etcd": buildReference, "routes": routes, "far": far,
	}
	command := commands[os.Args[1]]
	if command == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := command(ctx, os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// measure runs all rounds and prints the report, also of the rounds before one that failed.
func measure(ctx context.Context, arguments []string) error {
	p, err := parsePlan(arguments)
	if err != nil {
		return err
	}
	var all []figures
	fmt.Printf("%s; %d rounds of %s after %s; clients %v; %s\n\n", strings.Join(p.workloads, ", "), p.rounds, p.length,
		p.warm, p.clients, machine())
	for round := range p.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			fmt.Fprintf(os.Stderr, "%s round %d: %s\n", time.Now().Format(time.TimeOnly), round+1, s.name)
			var got []figures
			got, err = p.runServer(ctx, s)
			for i := range got {
				got[i].server, got[i].round = s.name, round
			}
			all = append(all, got...)
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", s.name, err), report(os.Stdout, p.servers, all))
			}
		}
	}
	return report(os.Stdout, p.servers, all)
}

// runServer runs all workloads once: what shares a cluster first, then what needs one of its own.
func (p *plan) runServer(ctx context.Context, s server) (all []figures, err error) {
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

func (p *plan) runShared(ctx context.Context, s server, workloads []string) (all []figures, err error) {
	c, _, err := newCluster(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	if err := fill(ctx, c, keyCount, keyAt); err != nil {
		return nil, err
	}
	for _, workload := range workloads {
		for _, clients := range p.clients {
			f, err := c.load(ctx, p, workload, clients)
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
	var workloads, clients string
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	flags.Func("server", "NAME=PATH of a binary that takes etcd's flags; repeat it, the first is the base of ratios",
		func(text string) error {
			name, path, ok := strings.Cut(text, "=")
			p.servers = append(p.servers, server{name: name, path: path})
			if !ok {
				return errors.New("want NAME=PATH")
			}
			return nil
		})
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.StringVar(&workloads, "workloads", "put,range,txn,mixed,watch",
		"of put, range, txn, mixed, watch, memory, start, kill-leader")
	flags.StringVar(&clients, "clients", "1,64,256", "numbers of closed-loop clients, or of watchers")
	flags.IntVar(&p.rounds, "rounds", 3, "rounds; each takes every server once")
	flags.IntVar(&p.values, "values", 1_000_000, "memory: how many values of 256 bytes to write")
	flags.IntVar(&p.snapshotMiB, "snapshot", 1024, "learner-snapshot: MiB of values of 16 KiB to write first")
	flags.DurationVar(&p.length, "duration", 5*time.Second, "of one measurement")
	flags.DurationVar(&p.warm, "warmup", 2*time.Second, "before each measurement")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if len(p.servers) == 0 || p.dir == "" || p.rounds < 1 || flags.NArg() > 0 {
		return nil, errors.New("want --server and --dir, at least one round, and nothing but flags")
	}
	p.workloads = strings.Split(workloads, ",")
	for _, workload := range p.workloads {
		if operations[workload] == nil && episodes[workload] == nil && workload != "watch" {
			return nil, fmt.Errorf("no workload %q", workload)
		}
	}
	for text := range strings.SplitSeq(clients, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("no number of clients: %q", text)
		}
		p.clients = append(p.clients, n)
	}
	return p, nil
}
