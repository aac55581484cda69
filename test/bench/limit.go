package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The sizes of the requests of `memory`.
const (
	putClients   = 64
	unreadBytes  = 4 << 10 // of a value that no client reads
	unreadWriter = 16
	unreadStream = 64 // watch streams that are never read, all of one host
	listClients  = 6
	listKeys     = 4000
	listBytes    = 10 << 10
	calmNodes    = "500"
	calmRate     = "200"
)

// limitedLoad is a load under which a member must stay within its memory. It ends when ctx does, or after length, and returns
// what was done, and what was refused.
type limitedLoad func(ctx context.Context, c *cluster.Cluster, length time.Duration) (done, refused int64, err error)

// limited puts a load on fresh members at each limit, and measures the peak of the largest one.
func limited(name string, do limitedLoad) planner {
	return func(f *flags) func() ([]trial, error) {
		limits := f.memoryLimits("256MiB,512MiB")
		length := f.duration("duration", "10s", "of one workload, but for fill", 1)
		return func() (all []trial, err error) {
			for _, limit := range *limits {
				t := trial{name: strings.TrimSpace(name + " " + limit)}
				if limit != "" {
					t.on.Flags = []string{"--memory=" + limit}
				}
				t.do = func(ctx context.Context, b *bed) ([]figures.Row, error) {
					row := figures.NewRow(t.name)
					done, refused, err := do(ctx, b.Cluster, *length)
					row.Set(figures.Done, float64(done))
					row.Set(figures.Refused, float64(refused))
					row.Set(figures.ResidentMiB, b.Resident("VmHWM"))
					row.Set(figures.AfterMiB, b.Resident("VmRSS"))
					return []figures.Row{row}, errors.Join(err, allThere(b.Cluster))
				}
				all = append(all, t)
			}
			return all, nil
		}
	}
}

// memoryLimits are values of the servers' flag --memory.
func (f *flags) memoryLimits(text string) *[]string {
	return take(f, "memory", text, "values of the servers' flag --memory to try; empty: without the flag",
		func(text string) ([]string, error) { return strings.Split(text, ","), nil })
}

// allThere fails if a member has ended.
func allThere(c *cluster.Cluster) (err error) {
	for _, m := range c.Members {
		select {
		case <-m.Ended:
			err = errors.Join(err, fmt.Errorf("%s ended:\n%s", m.Name, m.LastWords()))
		default:
		}
	}
	return err
}

func attackWithin(begin, again func(ctx context.Context, a *attackLoad) error) limitedLoad {
	return func(ctx context.Context, c *cluster.Cluster, length time.Duration) (done, refused int64, err error) {
		return attack(ctx, c, length, begin, again)
	}
}

// putsWithin puts small values from many clients.
func putsWithin(ctx context.Context, c *cluster.Cluster, length time.Duration) (done, refused int64, err error) {
	f, err := closed(ctx, c, window{new(time.Duration), &length}, "put", putClients)
	return int64(f.Values[figures.PerSecond] * length.Seconds()), int64(f.Values[figures.Failures]), err
}

// unreadWithin watches everything in streams that are never read, while values are put.
func unreadWithin(ctx context.Context, c *cluster.Cluster, length time.Duration) (done, refused int64, err error) {
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
	return repeat(ctx, workers, length, func(ctx context.Context, w *load.Worker) error {
		_, err := w.Client.Put(ctx, w.Keys.Key(), value)
		return err
	})
}

// listsWithin lists 40 MB at once, from several clients.
func listsWithin(ctx context.Context, c *cluster.Cluster, length time.Duration) (done, refused int64, err error) {
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
	return repeat(ctx, workers, length, func(ctx context.Context, w *load.Worker) error {
		got, err := w.Client.Get(ctx, "list/", clientv3.WithPrefix())
		if err == nil && len(got.Kvs) != listKeys {
			return fmt.Errorf("a list has %d keys, not %d", len(got.Kvs), listKeys)
		}
		return err
	})
}

// fills writes values, a hundred in a transaction.
func fills(f *flags) func() ([]trial, error) {
	values := f.number("values", "5000000", "fill: how many values of 256 bytes to write", 1, math.MaxInt)
	return limited("fill", func(ctx context.Context, c *cluster.Cluster, _ time.Duration) (done, refused int64, err error) {
		return int64(*values), 0, load.Fill(ctx, c, *values, func(i int) string { return fmt.Sprintf("m%09d", i) })
	})(f)
}

// k8sWithin is the load of a small Kubernetes cluster.
func k8sWithin(ctx context.Context, c *cluster.Cluster, length time.Duration) (done, refused int64, err error) {
	k := controlPlaneFlags(newFlags("k8s", map[string]string{"nodes": calmNodes, "rate": calmRate, "warmup": "5s",
		"duration": length.String()}))()
	session, err := k.open(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	rows, err := k.fixed(ctx, &bed{Cluster: c}, session)
	if err != nil {
		return 0, 0, err
	}
	return int64(rows[0].Values[figures.PerSecond] * length.Seconds()), int64(rows[0].Values[figures.Failures]), nil
}

// repeat lets all workers do something again and again for a time. An operation that fails counts as refused.
func repeat(
	ctx context.Context, workers []*load.Worker, length time.Duration, operate func(context.Context, *load.Worker) error,
) (done, refused int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, length)
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
