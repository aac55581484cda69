package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
)

// nativePlan is what the command line asks for.
type nativePlan struct {
	servers              []cluster.Server
	dir                  string
	operations, programs []int
	rounds               int
	warm, length         time.Duration
}

// native measures puts of a few programs that each have many under way: with Quorate's client, and etcd's for other servers.
func native(ctx context.Context, arguments []string) error {
	p := &nativePlan{}
	flags := flag.NewFlagSet("native", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	operations := flags.String("operations", "64,256,1024", "how many puts are under way at once")
	programs := flags.String("programs", "1,4,16", "numbers of clients over which they are spread")
	flags.IntVar(&p.rounds, "rounds", 3, "rounds; each takes every server once")
	flags.DurationVar(&p.length, "duration", 5*time.Second, "of one measurement")
	flags.DurationVar(&p.warm, "warmup", 2*time.Second, "before each measurement")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	var err, alsoErr error
	p.operations, err = parseNumbers(*operations)
	p.programs, alsoErr = parseNumbers(*programs)
	if err = errors.Join(err, alsoErr); err != nil || len(p.servers) == 0 || p.dir == "" {
		return errors.Join(err, errors.New("native: --server and --dir are required"))
	}
	fmt.Printf("puts, %d rounds of %s after %s; %s\n\n", p.rounds, p.length, p.warm, cluster.Machine())
	var all []figures.Row
	for round := range p.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
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

func (p *nativePlan) measure(ctx context.Context, s cluster.Server) (all []figures.Row, err error) {
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	if err := load.Fill(ctx, c, load.KeyCount, load.KeyAt); err != nil {
		return nil, err
	}
	for _, programs := range p.programs {
		for _, operations := range p.operations {
			f, err := p.puts(ctx, c, programs, operations)
			if err != nil {
				return all, err
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// puts lets workers, which share so many clients, put. Each client knows all members.
func (p *nativePlan) puts(ctx context.Context, c *cluster.Cluster, programs, operations int) (figures.Row, error) {
	f := figures.NewRow(fmt.Sprintf("put n=%d of %d", operations, programs))
	config := clientv3.Config{DialTimeout: 5 * time.Second}
	for _, m := range c.Members {
		config.Endpoints = append(config.Endpoints, m.ClientAddr)
	}
	var clients []*clientv3.Client
	var ends []func() error
	for range programs {
		if strings.HasPrefix(c.Server.Name, "quorate") {
			own, err := client.New(config)
			if err != nil {
				return f, err
			}
			clients, ends = append(clients, own.Client), append(ends, own.Close)
			continue
		}
		plain, err := clientv3.New(config)
		if err != nil {
			return f, err
		}
		clients, ends = append(clients, plain), append(ends, plain.Close)
	}
	var workers []*load.Worker
	for i := range operations {
		workers = append(workers, &load.Worker{Number: i, Client: clients[i%programs], Keys: load.NewChooser(uint64(i))})
	}
	from, to := load.ClosedLoop(ctx, c, workers, load.Put, p.warm, p.length)
	f.Set(figures.ResidentMiB, c.Resident("VmHWM"))
	load.Charge(&f, from, to, workers)
	err := ctx.Err()
	for _, end := range ends {
		err = errors.Join(err, end())
	}
	return f, err
}
