package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
)

const (
	listedKeys    = 100_000
	listedPart    = 1000 // keys of a range
	rangeClients  = 16
	streamClients = 4
	listedPrefix  = "listed/"
)

func listedKey(i int) string { return fmt.Sprintf("%s%06d", listedPrefix, i) }

// lists reads many keys at once, linearizably, from a cluster that nobody writes to.
func lists(name string, clients int, operate func(context.Context, *load.Worker) error) episode {
	return func(ctx context.Context, p *plan, s cluster.Server) (_ []figures.Row, err error) {
		c, _, err := cluster.Start(ctx, s, p.dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.Remove()) }()
		if err := load.Fill(ctx, c, listedKeys, listedKey); err != nil {
			return nil, err
		}
		workers, err := load.Open(ctx, c, clients)
		if err != nil {
			return nil, err
		}
		f := figures.NewRow(fmt.Sprintf("%s c=%d", name, clients))
		from, to := load.ClosedLoop(ctx, c, workers, operate, p.warm, p.length)
		f.Set(figures.ResidentMiB, c.Resident("VmHWM"))
		load.Charge(&f, from, to, workers)
		return []figures.Row{f}, errors.Join(ctx.Err(), load.Close(workers))
	}
}

// listPart gets 1,000 keys that follow each other.
func listPart(ctx context.Context, w *load.Worker) error {
	from := rand.IntN(listedKeys - listedPart)
	answer, err := w.Client.Get(ctx, listedKey(from), clientv3.WithRange(listedKey(from+listedPart)))
	if err != nil {
		return err
	}
	if len(answer.Kvs) != listedPart || string(answer.Kvs[0].Key) != listedKey(from) {
		return fmt.Errorf("a range has %d keys, not %d from %s on", len(answer.Kvs), listedPart, listedKey(from))
	}
	return nil
}

// streamAll gets all keys by RangeStream.
func streamAll(ctx context.Context, w *load.Worker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, err := w.Client.GetStream(ctx, listedPrefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	n := 0
	for answer := range answers {
		if err := answer.Err(); err != nil {
			return err
		}
		for _, kv := range answer.RangeResponse.Kvs {
			if string(kv.Key) != listedKey(n) {
				return fmt.Errorf("a stream has %s in place of %s", kv.Key, listedKey(n))
			}
			n++
		}
	}
	if n != listedKeys {
		return fmt.Errorf("a stream has %d keys, not %d", n, listedKeys)
	}
	return nil
}
