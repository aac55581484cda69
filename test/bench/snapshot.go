package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	largeValue       = 16 << 10
	snapshotWriters  = 64
	snapshotDeadline = 15 * time.Minute
	settling         = 20 * time.Second // after the fill: compactions of both servers' stores
)

// learnerSnapshot fills a cluster, and compares what writers get done while a learner receives all of it with what they
// get done before and afterwards. Before it joins, the log is made too short for it.
func learnerSnapshot(ctx context.Context, p *plan, s cluster.Server) (_ []figures.Row, err error) {
	c, err := filledCluster(ctx, p, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	if err := fillLarge(ctx, c, p.snapshotMiB); err != nil {
		return nil, err
	}
	cluster.Pause(ctx, settling)
	workers, err := load.Open(ctx, c, snapshotWriters)
	if err != nil {
		return nil, err
	}
	defer func() { _ = load.Close(workers) }() // everything was answered
	measure := func(when string, stop func() bool) (figures.Row, error) {
		f := figures.NewRow(fmt.Sprintf("learner-snapshot %d MiB, %s", p.snapshotMiB, when))
		load.Forget(workers)
		begun := c.Read()
		var phase atomic.Int32
		phase.Store(load.Measuring)
		wait := load.StartLoop(ctx, workers, load.Put, &phase)
		for ctx.Err() == nil && !stop() {
			cluster.Pause(ctx, cluster.RetryEvery)
		}
		ended := c.Read()
		phase.Store(load.Ending)
		wait()
		load.Charge(&f, begun, ended, workers)
		f.Set(figures.WaitMillis, figures.Millis(ended.At.Sub(begun.At)))
		return f, ctx.Err()
	}
	after := func(d time.Duration) func() bool {
		end := time.Now().Add(d)
		return func() bool { return time.Now().After(end) }
	}
	before, err := measure("before", after(p.warm+p.length))
	if err != nil {
		return nil, err
	}
	m, err := c.Admit(ctx, c.Control.MemberAddAsLearner)
	if err != nil {
		return nil, err
	}
	during, err := measure("during", caughtUp(ctx, c, m))
	if err != nil {
		return nil, err
	}
	later, err := measure("after", after(p.warm+p.length))
	return []figures.Row{before, during, later}, err
}

// caughtUp reports whether a learner has applied what the cluster had when it was asked for the first time.
func caughtUp(ctx context.Context, c *cluster.Cluster, m *cluster.Member) func() bool {
	target, deadline := uint64(0), time.Now().Add(snapshotDeadline)
	status := func(address string) *clientv3.StatusResponse {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		answer, err := c.Control.Status(limited, address)
		if err != nil {
			return nil
		}
		return answer
	}
	return func() bool {
		if target == 0 {
			if first := status(c.Members[0].ClientAddr); first != nil {
				target = first.RaftAppliedIndex
			}
			return false
		}
		own := status(m.ClientAddr)
		return own != nil && own.RaftAppliedIndex >= target || time.Now().After(deadline)
	}
}

// fillLarge writes so many MiB in values of 16 KiB, 64 in a transaction. The writes measured before the learner joins
// then make both servers cut their logs below it: etcd keeps 5,000 entries and cuts every 10,000.
func fillLarge(ctx context.Context, c *cluster.Cluster, mib int) error {
	const batch = 64
	source := rand.NewChaCha8([32]byte{2})
	value := make([]byte, largeValue)
	for i := 0; i < mib<<20/largeValue; i += batch {
		puts := make([]clientv3.Op, batch)
		for n := range puts {
			_, _ = source.Read(value) // never fails
			puts[n] = clientv3.OpPut(fmt.Sprintf("large%08d", i+n), string(value))
		}
		if _, err := c.Control.Txn(ctx).Then(puts...).Commit(); err != nil {
			return fmt.Errorf("fill with large values from %d: %w", i, err)
		}
	}
	return nil
}
