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
	"text/tabwriter"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What the workloads of `memory` ask for.
const (
	putClients   = 64
	unreadBytes  = 4 << 10 // of a value that nobody reads
	unreadWriter = 16
	unreadStream = 64 // watch streams that are never read, all of one host
	listClients  = 6
	listKeys     = 4000
	listBytes    = 10 << 10
	calmNodes    = 500
	calmRate     = 200
)

// limitPlan is what the command line of `memory` asks for.
type limitPlan struct {
	plan
	limits []string
}

// limited are the workloads under which a member must stay within its memory. They end when ctx does, or after length, and
// return what was done, and what was refused.
var limited = map[string]func(ctx context.Context, p *limitPlan, c *cluster.Cluster) (done, refused int64, err error){
	"put": putsWithin, "unread": unreadWithin, "list": listsWithin, "fill": fillWithin, "k8s": k8sWithin,
	"unread-behind": attackWithin(unreadBehind, nil), "unread-ranges": attackWithin(unreadRanges, putOne),
	"delete-all": attackWithin(deleteAll, nil), "end-lease": attackWithin(endLease, nil),
	"long-keys": attackWithin(longKeys, nil), "long-lease": attackWithin(longLease, nil),
}

func attackWithin(
	begin, again func(ctx context.Context, a *attackLoad) error,
) func(ctx context.Context, p *limitPlan, c *cluster.Cluster) (done, refused int64, err error) {
	return func(ctx context.Context, p *limitPlan, c *cluster.Cluster) (done, refused int64, err error) {
		return attack(ctx, c, p.length, begin, again)
	}
}

// memoryLimits runs each workload on a fresh cluster at each limit, and prints the peak of the largest member beside it.
func memoryLimits(ctx context.Context, arguments []string) error {
	p, err := parseLimits(arguments)
	if err != nil {
		return err
	}
	fmt.Printf("peak of the largest member's resident set; %s; %s\n\n", p.length, cluster.Machine())
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "workload\tserver\tmemory\tpeak MiB\tat the end MiB\tdone\trefused\t")
	for _, workload := range p.workloads {
		for _, s := range p.servers {
			for _, limit := range p.limits {
				if err := p.measureLimit(ctx, table, workload, limit, s); err != nil {
					return errors.Join(fmt.Errorf("%s, %s, %s: %w", workload, s.Name, limit, err), table.Flush())
				}
			}
		}
	}
	return table.Flush()
}

func (p *limitPlan) measureLimit(
	ctx context.Context, table *tabwriter.Writer, workload, limit string, s cluster.Server,
) (err error) {
	if limit != "" {
		s.Flags = append(slices.Clone(s.Flags), "--memory="+limit)
	}
	fmt.Fprintf(os.Stderr, "%s %s: %s %s\n", time.Now().Format(time.TimeOnly), workload, s.Name, limit)
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	done, refused, err := limited[workload](ctx, p, c)
	for _, m := range c.Members {
		select {
		case <-m.Ended:
			err = errors.Join(err, fmt.Errorf("%s ended:\n%s", m.Name, m.LastWords()))
		default:
		}
	}
	if err == nil {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.0f\t%.0f\t%d\t%d\t\n", workload, s.Name, limit, c.Resident("VmHWM"),
			c.Resident("VmRSS"), done, refused)
	}
	return err
}

// putsWithin puts small values from many clients.
func putsWithin(ctx context.Context, p *limitPlan, c *cluster.Cluster) (done, refused int64, err error) {
	f, err := closed(ctx, c, &p.plan, "put", putClients)
	return int64(f.Values[figures.PerSecond] * p.length.Seconds()), int64(f.Values[figures.Failures]), err
}

// unreadWithin watches everything in streams that are never read, while values are put.
func unreadWithin(ctx context.Context, p *limitPlan, c *cluster.Cluster) (done, refused int64, err error) {
	workers, err := load.Open(ctx, c, unreadWriter)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, load.Close(workers)) }()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range unreadStream {
		client, err := cluster.Connect(c.Members[i%len(c.Members)].ClientAddr)
		if err != nil {
			return 0, 0, err
		}
		defer client.Close()
		stream, err := pb.NewWatchClient(client.ActiveConnection()).Watch(watching)
		if err != nil {
			return 0, 0, err
		}
		everything := &pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), PrevKv: true}
		if err := stream.Send(&pb.WatchRequest{
			RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: everything}}); err != nil {
			return 0, 0, err
		}
	}
	value := strings.Repeat("u", unreadBytes)
	return p.repeat(ctx, workers, func(ctx context.Context, w *load.Worker) error {
		_, err := w.Client.Put(ctx, w.Keys.Key(), value)
		return err
	})
}

// listsWithin lists 40 MB at once, from several clients.
func listsWithin(ctx context.Context, p *limitPlan, c *cluster.Cluster) (done, refused int64, err error) {
	workers, err := load.Open(ctx, c, listClients)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, load.Close(workers)) }()
	value := strings.Repeat("l", listBytes)
	var next atomic.Int64
	if err := load.Each(workers, func(w *load.Worker) error {
		for n := next.Add(1); n <= listKeys; n = next.Add(1) {
			if _, err := w.Client.Put(ctx, fmt.Sprintf("list/%05d", n), value); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, 0, err
	}
	return p.repeat(ctx, workers, func(ctx context.Context, w *load.Worker) error {
		got, err := w.Client.Get(ctx, "list/", clientv3.WithPrefix())
		if err == nil && len(got.Kvs) != listKeys {
			return fmt.Errorf("a list has %d keys, not %d", len(got.Kvs), listKeys)
		}
		return err
	})
}

// fillWithin writes --values values, a hundred in a transaction.
func fillWithin(ctx context.Context, p *limitPlan, c *cluster.Cluster) (done, refused int64, err error) {
	return int64(p.values), 0, load.Fill(ctx, c, p.values, func(i int) string { return fmt.Sprintf("m%09d", i) })
}

// k8sWithin is the load of a small Kubernetes cluster, on a cluster of its own.
func k8sWithin(ctx context.Context, p *limitPlan, c *cluster.Cluster) (done, refused int64, err error) {
	k, err := parseControlPlane([]string{"--server", c.Server.Name + "=" + c.Server.Path, "--dir", p.dir, "--nodes",
		fmt.Sprint(calmNodes), "--rate", fmt.Sprint(calmRate), "--duration", p.length.String()})
	if err != nil {
		return 0, 0, err
	}
	session, err := k.open(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	rows, err := k.fixed(ctx, c, session, 0)
	if err != nil {
		return 0, 0, err
	}
	return int64(rows[0].Values[figures.PerSecond] * p.length.Seconds()), int64(rows[0].Values[figures.Failures]), nil
}

// repeat lets all workers do something again and again for the length of the measurement. What fails counts as refused.
func (p *limitPlan) repeat(
	ctx context.Context, workers []*load.Worker, operate func(context.Context, *load.Worker) error,
) (done, refused int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.length)
	defer cancel()
	var good, bad atomic.Int64
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			for ctx.Err() == nil {
				switch err := operate(ctx, w); {
				case err == nil:
					good.Add(1)
				case ctx.Err() == nil:
					bad.Add(1)
					cluster.Pause(ctx, load.PauseAfterError)
				}
			}
		})
	}
	group.Wait()
	return good.Load(), bad.Load(), nil
}

func parseLimits(arguments []string) (*limitPlan, error) {
	p := &limitPlan{}
	var workloads, limits string
	flags := flag.NewFlagSet("memory", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.StringVar(&limits, "memory", "256MiB,512MiB", "values of the flag --memory to try; empty: without the flag")
	flags.StringVar(&workloads, "workloads", "put,unread,list,k8s,fill",
		"of these, or the attacks unread-behind, unread-ranges, delete-all, end-lease, long-keys, long-lease")
	flags.IntVar(&p.values, "values", 5_000_000, "fill: how many values of 256 bytes to write")
	flags.DurationVar(&p.length, "duration", 10*time.Second, "of one workload, but for fill")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if len(p.servers) == 0 || p.dir == "" || flags.NArg() > 0 {
		return nil, errors.New("memory: want --server and --dir, and nothing but flags")
	}
	p.limits, p.workloads = strings.Split(limits, ","), strings.Split(workloads, ",")
	for _, workload := range p.workloads {
		if limited[workload] == nil {
			return nil, fmt.Errorf("memory: no workload %q", workload)
		}
	}
	return p, nil
}
