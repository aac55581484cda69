package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/distance"
	"github.com/quorate/quorate/test/bench/figures"

	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/client"
)

// farLoad is what is asked of one server.
type farLoad struct {
	server             string
	writers, natives   int
	delay, clientDelay time.Duration // one way
	length             time.Duration
	reads              bool
	told               func(figures.Row) // gets each row; nil: nobody
}

func (f farLoad) measure(ctx context.Context, s cluster.Server, dir string, size int) error {
	var proxies []net.Listener
	defer func() {
		for _, l := range proxies {
			_ = l.Close()
		}
	}()
	c, _, err := cluster.StartBehind(ctx, s, dir, size, func(address string) (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		proxies = append(proxies, l)
		go distance.PassOn(l, address, func(net.Addr) (time.Duration, error) { return f.delay, nil })
		return l.Addr().String(), nil
	})
	if err != nil {
		return err
	}
	defer func() { _ = c.Remove() }()
	leader, follower, err := roles(ctx, c)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // members measure how far they are from each other
	options := clientv3.Config{DialTimeout: 5 * time.Second, DialOptions: []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return distance.Dial(ctx, address, f.clientDelay)
		}),
	}}
	for _, row := range []struct{ name, endpoint string }{
		{"clientv3, through a follower", follower}, {"clientv3, through the leader", leader},
	} {
		config := options
		config.Endpoints = []string{row.endpoint}
		plain, err := clientv3.New(config)
		if err != nil {
			return err
		}
		err = f.row(ctx, "put, "+row.name, []*clientv3.Client{plain}, putFar, func() string { return "" })
		if f.reads && err == nil {
			err = f.row(ctx, "get, "+row.name, []*clientv3.Client{plain}, getFar, func() string { return "" })
		}
		err = errors.Join(err, plain.Close())
		if err != nil {
			return err
		}
	}
	if s.Name != "quorate" || f.clientDelay == 0 {
		return nil // its own client asks all members, and is beside one of them only
	}
	for _, m := range c.Members {
		options.Endpoints = append(options.Endpoints, m.ClientAddr)
	}
	return f.ownClients(ctx, options)
}

func putFar(ctx context.Context, c *clientv3.Client, key string) error {
	_, err := c.Put(ctx, key, "value")
	return err
}

func getFar(ctx context.Context, c *clientv3.Client, key string) error {
	_, err := c.Get(ctx, key)
	return err
}

// ownClients measures Quorate's own client, or several.
func (f farLoad) ownClients(ctx context.Context, options clientv3.Config) (err error) {
	var own []*client.Client
	var plain []*clientv3.Client
	for range f.natives {
		one, err := client.New(options)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, one.Close()) }()
		own, plain = append(own, one), append(plain, one.Client)
	}
	return f.row(ctx, fmt.Sprintf("put, its own, %d of them", f.natives), plain, putFar, func() string {
		var all client.Stats
		for _, one := range own {
			stats := one.Stats()
			all.Writes, all.Offered, all.Won = all.Writes+stats.Writes, all.Offered+stats.Offered, all.Won+stats.Won
		}
		return fmt.Sprintf("%.1f%% offered to all, %.1f%% of these won", share(all.Offered, all.Writes),
			share(all.Won, all.Offered))
	})
}

func share(part, whole uint64) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// roles returns where the leader and one of the others serve clients.
func roles(ctx context.Context, c *cluster.Cluster) (leader, follower string, err error) {
	for _, m := range c.Members {
		status, err := c.Control.Status(ctx, m.ClientAddr)
		switch {
		case err != nil:
			return "", "", err
		case status.Leader == status.Header.MemberId:
			leader = m.ClientAddr
		default:
			follower = m.ClientAddr
		}
	}
	if leader == "" {
		return "", "", errors.New("nobody leads")
	}
	return leader, follower, nil
}

// row does one operation after another from each writer, on distinct keys, and prints how long they took. The first second,
// in which connections are made, does not count.
func (f farLoad) row(
	ctx context.Context, name string, clients []*clientv3.Client,
	do func(context.Context, *clientv3.Client, string) error, remark func() string,
) error {
	begin := time.Now().Add(time.Second)
	end := begin.Add(f.length)
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var all sync.WaitGroup
	for w := range f.writers {
		all.Go(func() {
			for n := 0; ; n++ {
				begun := time.Now()
				if begun.After(end) {
					return
				}
				err := do(ctx, clients[w%len(clients)], fmt.Sprintf("far/%d/%d", w, n))
				mu.Lock()
				if failed = errors.Join(failed, err); begun.After(begin) {
					took = append(took, time.Since(begun))
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	if failed != nil {
		return failed
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
	}
	fmt.Printf("%-9s %-33s %8.1f %8.1f %8.1f %8d  %s\n", f.server, name, at(0.5), at(0.9), at(0.99), len(took), remark())
	if f.told != nil {
		r := figures.NewRow(name)
		r.Set(figures.MedianMillis, at(0.5))
		r.Set(figures.P99Millis, at(0.99))
		r.Set(figures.PerSecond, float64(len(took))/f.length.Seconds())
		f.told(r)
	}
	return nil
}
