package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	clientv3 "go.etcd.io/etcd/client/v3"

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

// lists reads many keys at once, linearizably, from a cluster to which no client writes.
func lists(name string, clients int, operate func(context.Context, *load.Worker) error) planner {
	return func(f *flags) func() ([]trial, error) {
		w := f.window()
		do := func(ctx context.Context, b *bed) ([]figures.Row, error) {
			if err := load.Fill(ctx, b.Cluster, listedKeys, listedKey); err != nil {
				return nil, err
			}
			workers, err := load.Open(ctx, b.Cluster, clients)
			if err != nil {
				return nil, err
			}
			row := figures.NewRow(fmt.Sprintf("%s c=%d", name, clients))
			from, to := load.ClosedLoop(ctx, b.Cluster, workers, operate, *w.warm, *w.length)
			row.Set(figures.ResidentMiB, b.Resident("VmHWM"))
			load.Charge(&row, from, to, workers)
			return []figures.Row{row}, errors.Join(ctx.Err(), load.Close(workers))
		}
		return func() ([]trial, error) { return []trial{{do: do}}, nil }
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
