package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/distance"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/client"
)

// farLoad is writers, and maybe readers, that are far away from members, which are far away from each other.
type farLoad struct {
	members, writers, natives int
	clientDelay               time.Duration // one way
	length                    time.Duration
	reads                     bool
}

// between are members that are one round trip apart, and clients in the site of the member that they ask, or in no member's
// site and as far from each as these are from each other; or five members in five regions, and clients beside each of them.
func between(f *flags) func() ([]trial, error) {
	members := f.number("members", "5", "members of each cluster", 1, 9)
	trip := tripFlag(f)
	writers := f.numbers("clients", "4", "numbers of writers, on one connection to each member")
	natives := f.number("natives", "1", "clients of its own among which the writers are spread", 1, math.MaxInt)
	length := f.duration("duration", "10s", "how long to measure each row", 1)
	beside := f.yes("beside", "the client is in the site of the member that it asks")
	reads := f.yes("reads", "measure linearizable reads, too")
	geo := regionsFlag(f)
	return func() (all []trial, err error) {
		for _, n := range *writers {
			l := &farLoad{members: *members, writers: n, natives: *natives, length: *length, reads: *reads}
			if !*beside {
				l.clientDelay = *trip / 2
			}
			t := trial{name: fmt.Sprintf("%d sites, %s apart, %d writers", *members, *trip, n), do: l.measure,
				on: cluster.Conditions{Members: *members, Way: func(int, int) time.Duration { return *trip / 2 }}}
			if *geo {
				t = trial{name: fmt.Sprintf("five regions, %d writers", n), do: l.measureRegions, on: betweenSites()}
			}
			all = append(all, t)
		}
		return all, nil
	}
}

func tripFlag(f *flags) *time.Duration {
	return f.duration("trip", "50ms", "round trip between any two of members and client", 0)
}

func regionsFlag(f *flags) *bool {
	return f.yes("regions", "five members in five regions of the world, and clients beside each of them")
}

// arithmetic says what no server can do better.
func arithmetic(f *flags) func(e *experiment) error {
	trip, geo := tripFlag(f), regionsFlag(f)
	return func(e *experiment) error {
		if ms := float64(trip.Microseconds()) / 1000; !*geo {
			e.tail = fmt.Sprintf("\nBy arithmetic alone: one round trip %.0f ms, two %.0f, three %.0f.\n", ms, 2*ms, 3*ms)
		}
		return nil
	}
}

// measure has clients ask a follower, and the leader, and clients of Quorate's own, which ask all members.
func (f *farLoad) measure(ctx context.Context, b *bed) (all []figures.Row, err error) {
	leader, err := b.Leader(ctx)
	if err != nil {
		return nil, err
	}
	follower := b.Members[len(b.Members)-1]
	if follower == leader {
		follower = b.Members[0]
	}
	cluster.Pause(ctx, 2*time.Second) // members measure how far they are from each other
	options := clientv3.Config{DialTimeout: 5 * time.Second, DialOptions: []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return distance.Dial(ctx, address, f.clientDelay)
		}),
	}}
	for _, through := range []struct {
		role   string
		member *cluster.Member
	}{{"follower", follower}, {"leader", leader}} {
		config := options
		config.Endpoints = []string{through.member.ClientAddr}
		plain, err := clientv3.New(config)
		if err != nil {
			return all, err
		}
		rows, err := f.ask(ctx, b.Cluster, plain, fmt.Sprintf("%d sites, %d", len(b.Members), f.writers), through.role)
		all = append(all, rows...)
		if err = errors.Join(err, plain.Close()); err != nil {
			return all, err
		}
	}
	if b.Server.Name != "quorate" || f.clientDelay == 0 {
		return all, nil // its own client asks all members, and is beside one of them only
	}
	for _, m := range b.Members {
		options.Endpoints = append(options.Endpoints, m.ClientAddr)
	}
	own, err := f.ownClients(ctx, b.Cluster, options)
	return append(all, own), err
}

// measureRegions makes eu lead, and has clients in each region ask the member there.
func (f *farLoad) measureRegions(ctx context.Context, b *bed) (all []figures.Row, err error) {
	if err := leadFrom(ctx, b.Cluster, leadingSite); err != nil {
		return nil, err
	}
	cluster.Pause(ctx, siteSettles) // members measure how far they are from each other
	for i, m := range b.Members {
		plain, err := cluster.Connect(m.ClientAddr)
		if err != nil {
			return all, err
		}
		rows, err := f.ask(ctx, b.Cluster, plain, fmt.Sprintf("regions, %d", f.writers), sites[i])
		all = append(all, rows...)
		if err = errors.Join(err, plain.Close()); err != nil {
			return all, err
		}
	}
	return all, leadsStill(ctx, b.Cluster, leadingSite)
}

// ask puts, and maybe gets, from one place.
func (f *farLoad) ask(
	ctx context.Context, on *cluster.Cluster, c *clientv3.Client, what, where string,
) (all []figures.Row, err error) {
	put, err := f.row(ctx, on, fmt.Sprintf("%s: put, %s", what, where), []*clientv3.Client{c}, load.PutNew)
	if err != nil || !f.reads {
		return []figures.Row{put}, err
	}
	get, err := f.row(ctx, on, fmt.Sprintf("%s: get, %s", what, where), []*clientv3.Client{c}, load.GetNew)
	return []figures.Row{put, get}, err
}

// ownClients measures Quorate's own client, or several.
func (f *farLoad) ownClients(
	ctx context.Context, on *cluster.Cluster, options clientv3.Config,
) (row figures.Row, err error) {
	var own []*client.Client
	var plain []*clientv3.Client
	for range f.natives {
		one, err := client.New(options)
		if err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, one.Close()) }()
		own, plain = append(own, one), append(plain, one.Client)
	}
	name := fmt.Sprintf("%d sites, %d: put, its own, %d of them", len(on.Members), f.writers, f.natives)
	row, err = f.row(ctx, on, name, plain, load.PutNew)
	var all client.Stats
	for _, one := range own {
		stats := one.Stats()
		all.Writes, all.Offered, all.Won = all.Writes+stats.Writes, all.Offered+stats.Offered, all.Won+stats.Won
	}
	row.Set(figures.OfferedPercent, share(all.Offered, all.Writes))
	row.Set(figures.WonPercent, share(all.Won, all.Offered))
	return row, err
}

func share(part, whole uint64) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// row does one operation after another from each writer, on distinct keys, and measures how long they took. The first second,
// in which connections are made, does not count.
func (f *farLoad) row(
	ctx context.Context, c *cluster.Cluster, name string, clients []*clientv3.Client,
	operate func(context.Context, *load.Worker) error,
) (figures.Row, error) {
	r := figures.NewRow(name)
	var workers []*load.Worker
	for i := range f.writers {
		workers = append(workers, &load.Worker{Number: i, Client: clients[i%len(clients)]})
	}
	from, to := load.ClosedLoop(ctx, c, workers, operate, time.Second, f.length)
	load.Charge(&r, from, to, workers)
	times := load.Times(workers)
	r.Latencies(times.Count(), times.Quantile, times.Longest(), to.At.Sub(from.At))
	if r.Values[figures.Failures] > 0 {
		return r, fmt.Errorf("%s: %.0f operations failed", name, r.Values[figures.Failures])
	}
	return r, ctx.Err()
}
