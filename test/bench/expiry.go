package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
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
	expiryPoll     = 50 * time.Millisecond
)

// expiry is leases that end within one second.
type expiry struct {
	leases, keys int // keys of each
	after        time.Duration
}

// run grants the leases, hangs keys on them, and compares what writers get done while all of them end with what they get done
// before. The time of "during" is until the last key is gone.
func (e *expiry) run(ctx context.Context, s cluster.Server, dir string) (_ []figures.Row, err error) {
	c, _, err := cluster.Start(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	workers, err := load.Open(ctx, c, expiryWriters)
	if err != nil {
		return nil, err
	}
	defer func() { _ = load.Close(workers) }() // everything was answered
	end := time.Now().Add(e.after)
	if err := e.grant(ctx, c, end); err != nil {
		return nil, err
	}
	measure := func(when string, stop func() (bool, error)) (figures.Row, error) {
		f := figures.NewRow(fmt.Sprintf("expiry %d leases of %d keys, %s", e.leases, e.keys, when))
		load.Forget(workers)
		begun := c.Read()
		var phase atomic.Int32
		phase.Store(load.Measuring)
		wait := load.StartLoop(ctx, workers, load.Put, &phase)
		stopped, err := false, error(nil)
		for ctx.Err() == nil && err == nil && !stopped {
			cluster.Pause(ctx, expiryPoll)
			stopped, err = stop()
		}
		ended := c.Read()
		phase.Store(load.Ending)
		wait()
		load.Charge(&f, begun, ended, workers)
		f.Set(figures.WaitMillis, figures.Millis(ended.At.Sub(begun.At)))
		return f, errors.Join(ctx.Err(), err)
	}
	before, err := measure("before", func() (bool, error) { return time.Until(end) < time.Second, nil })
	if err != nil {
		return nil, err
	}
	cluster.Pause(ctx, time.Until(end))
	deadline := time.Now().Add(expiryDeadline)
	during, err := measure("during", func() (bool, error) {
		left, err := c.Control.Get(ctx, expiryPrefix,
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
		if number >= e.leases {
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
		for i := range e.keys {
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
