package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
)

// native has a few programs that each have many puts under way: with Quorate's client, and etcd's for other servers.
func native(f *flags) func() ([]trial, error) {
	w := f.window()
	operations := f.numbers("operations", "64,256,1024", "how many puts are under way at once")
	programs := f.numbers("programs", "1,4,16", "numbers of clients over which they are spread")
	do := func(ctx context.Context, b *bed) (all []figures.Row, err error) {
		for _, clients := range *programs {
			for _, n := range *operations {
				row, err := nativePuts(ctx, b.Cluster, w, clients, n)
				if err != nil {
					return all, err
				}
				all = append(all, row)
			}
		}
		return all, nil
	}
	return func() ([]trial, error) { return []trial{{filled: true, do: do}}, nil }
}

// nativePuts lets workers, which share so many clients, put. Each client knows all members.
func nativePuts(ctx context.Context, c *cluster.Cluster, w window, programs, operations int) (figures.Row, error) {
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
	from, to := load.ClosedLoop(ctx, c, workers, load.Put, *w.warm, *w.length)
	f.Set(figures.ResidentMiB, c.Resident("VmHWM"))
	load.Charge(&f, from, to, workers)
	err := ctx.Err()
	for _, end := range ends {
		err = errors.Join(err, end())
	}
	return f, err
}
