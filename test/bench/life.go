package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/k8s"
)

const (
	idleTicks   = 3 // a member that takes no more CPU in a second has nothing left to do by itself
	idleSeconds = 2
	idleLimit   = time.Minute
)

// lifePlan is what the command line asks for.
type lifePlan struct {
	servers     []server
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
		p.clients, p.compactions, p.rounds, machine())
	var all []figures
	var parts []writtenParts
	for round := range p.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, l := range p.loads {
			for _, s := range order {
				f, part, err := p.measure(ctx, s, l)
				if err != nil {
					return errors.Join(fmt.Errorf("%s, %s: %w", s.name, l, err), report(os.Stdout, p.servers, all))
				}
				f.server, f.round = s.name, round
				all, parts = append(all, f), append(parts, part)
			}
		}
	}
	fmt.Println()
	return errors.Join(report(os.Stdout, p.servers, all), printParts(os.Stdout, parts))
}

// measure does one load on a fresh cluster.
func (p *lifePlan) measure(ctx context.Context, s server, l lifeLoad) (f figures, parts writtenParts, err error) {
	c, _, err := newCluster(ctx, s, p.dir)
	if err != nil {
		return f, parts, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	workers, err := openWorkers(ctx, c, p.clients)
	if err != nil {
		return f, parts, err
	}
	defer func() { err = errors.Join(err, closeWorkers(workers)) }()
	run := newLifeRun(c, workers, l, p.random)
	if err := run.fill(ctx); err != nil {
		return f, parts, err
	}
	if err := c.settle(ctx); err != nil {
		return f, parts, err
	}
	meters := c.meter(p.dir)
	meters.open()
	took, err := run.puts(ctx, p.compactions)
	if err == nil {
		err = run.forgetAll(ctx)
	}
	if err == nil {
		err = c.settle(ctx)
	}
	if err != nil {
		return f, parts, err
	}
	meters.close()
	f = newFigures(l.String())
	meters.charge(&f, float64(l.puts))
	f.set(perSecond, float64(l.puts)/took.Seconds())
	f.set(medianMillis, millis(run.times.Quantile(0.50)))
	f.set(p99Millis, millis(run.times.Quantile(0.99)))
	f.set(maxMillis, millis(run.times.Longest()))
	f.set(deviceBytes, f.values[deviceMiB]*(1<<20)/float64(l.puts))
	f.set(lowestSecond, run.seconds.lowest())
	fmt.Printf("%s %s, %s: puts in each second, * where a compaction began:\n  %s\n", time.Now().Format(time.TimeOnly),
		s.name, l, &run.seconds)
	return f, writtenParts{s.name + ", " + l.String(), float64(l.puts), meters.countsTo.since(meters.countsFrom)}, nil
}

// settle returns once no member does anything by itself, and what they wrote is on the device. Members of ours are made to
// write what they hold in memory.
func (c *cluster) settle(ctx context.Context) error {
	for _, m := range c.members {
		if err := flush(ctx, m.clientAddr); err != nil {
			return err
		}
	}
	until := time.Now().Add(idleLimit)
	for idle := 0; idle < idleSeconds; {
		if time.Now().After(until) {
			return errors.New("the members do not come to rest")
		}
		before := c.cpuTime()
		if pause(ctx, time.Second); ctx.Err() != nil {
			return ctx.Err()
		}
		if idle++; c.cpuTime()-before > idleTicks*tick*time.Duration(len(c.members)) {
			idle = 0
		}
	}
	syscall.Sync()
	return nil
}

// flush asks a member for the begin of a snapshot, which it takes from its files: what is in memory only is written first.
func flush(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, idleLimit)
	defer cancel()
	client, err := connect(address)
	if err != nil {
		return err
	}
	snapshot, err := clientv3.NewMaintenance(client).Snapshot(ctx)
	if err == nil {
		_, err = io.ReadFull(snapshot, make([]byte, 1))
		err = errors.Join(err, snapshot.Close())
	}
	return errors.Join(err, client.Close())
}

func parseLife(arguments []string) (*lifePlan, error) {
	p := &lifePlan{}
	var values string
	flags := flag.NewFlagSet("life", flag.ExitOnError)
	serverFlag(flags, &p.servers)
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
