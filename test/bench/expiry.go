package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	expiryWriters  = 16
	expiryGrants   = 64 // at once
	expiryPrefix   = "expiry/"
	expiryDeadline = 10 * time.Minute
	expiryBatch    = 100 // keys in a transaction
	leastTTLLeft   = 3 * time.Second
)

// expiry is leases that end within one second.
type expiry struct {
	leases, keys *int           // keys of each
	after        *time.Duration // when they end
}

func expiries(f *flags) func() ([]trial, error) {
	e := &expiry{
		leases: f.number("leases", "10000", "expiry: leases that end together", 1, math.MaxInt),
		keys:   f.number("lease-keys", "1", "expiry: keys of each", 0, math.MaxInt),
		after:  f.duration("expire-after", "25s", "expiry: when they end; all must be granted by then", leastTTLLeft),
	}
	return func() ([]trial, error) { return []trial{{do: e.run}}, nil }
}

// run grants the leases, hangs keys on them, and compares what writers get done while all of them end with what they get done
// before. The time of "during" is until the last key is gone.
func (e *expiry) run(ctx context.Context, b *bed) (_ []figures.Row, err error) {
	workers, err := load.Open(ctx, b.Cluster, expiryWriters)
	if err != nil {
		return nil, err
	}
	defer func() { _ = load.Close(workers) }() // everything was answered
	end := time.Now().Add(*e.after)
	if err := e.grant(ctx, b.Cluster, end); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("expiry %d leases of %d keys, ", *e.leases, *e.keys)
	before, err := writeUntil(ctx, b.Cluster, workers, name+"before",
		func() (bool, error) { return time.Until(end) < time.Second, nil })
	if err != nil {
		return nil, err
	}
	cluster.Pause(ctx, time.Until(end))
	deadline := time.Now().Add(expiryDeadline)
	during, err := writeUntil(ctx, b.Cluster, workers, name+"during", func() (bool, error) {
		left, err := b.Control.Get(ctx, expiryPrefix,
			clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithSerializable())
		if err != nil || left.Count == 0 {
			return true, err
		}
		if time.Now().After(deadline) {
			return true, fmt.Errorf("%d keys are left %s after their leases were due", left.Count, expiryDeadline)
		}
		return false, nil
	})
	return []figures.Row{before, during}, err
}

// writeUntil measures what writers get done until stop says so, or fails.
func writeUntil(
	ctx context.Context, c *cluster.Cluster, workers []*load.Worker, name string, stop func() (bool, error),
) (figures.Row, error) {
	f := figures.NewRow(name)
	load.Forget(workers)
	begun := c.Read()
	var phase atomic.Int32
	phase.Store(load.Measuring)
	wait := load.StartLoop(ctx, workers, load.Put, &phase)
	stopped, err := false, error(nil)
	for ctx.Err() == nil && err == nil && !stopped {
		cluster.Pause(ctx, cluster.RetryEvery)
		stopped, err = stop()
	}
	ended := c.Read()
	phase.Store(load.Ending)
	wait()
	load.Charge(&f, begun, ended, workers)
	f.Set(figures.WaitMillis, figures.Millis(ended.At.Sub(begun.At)))
	return f, errors.Join(ctx.Err(), err)
}

// grant grants leases that end within the second after end.
func (e *expiry) grant(ctx context.Context, c *cluster.Cluster, end time.Time) error {
	workers, err := load.Open(ctx, c, expiryGrants)
	if err != nil {
		return err
	}
	defer func() { _ = load.Close(workers) }() // everything was answered
	var next atomic.Int64
	var group sync.WaitGroup
	failures := make([]error, len(workers))
	for i, w := range workers {
		group.Go(func() { failures[i] = e.grantBy(ctx, w, &next, end) })
	}
	group.Wait()
	return errors.Join(failures...)
}

// grantBy grants leases until all workers together have granted all.
func (e *expiry) grantBy(ctx context.Context, w *load.Worker, next *atomic.Int64, end time.Time) error {
	var puts []clientv3.Op
	flush := func() error {
		if len(puts) == 0 {
			return nil
		}
		_, err := w.Client.Txn(ctx).Then(puts...).Commit()
		puts = puts[:0]
		return err
	}
	for {
		number := int(next.Add(1)) - 1
		if number >= *e.leases {
			return flush()
		}
		left := time.Until(end)
		if left < leastTTLLeft {
			return fmt.Errorf("%d of %d leases are granted: let them end later (--expire-after)", number, e.leases)
		}
		granted, err := w.Client.Grant(ctx, int64((left+time.Second-1)/time.Second))
		if err != nil {
			return err
		}
		for i := range *e.keys {
			key := fmt.Sprintf("%s%07d/%04d", expiryPrefix, number, i)
			puts = append(puts, clientv3.OpPut(key, "v", clientv3.WithLease(granted.ID)))
			if len(puts) < expiryBatch {
				continue
			}
			if err := flush(); err != nil {
				return err
			}
		}
	}
}
