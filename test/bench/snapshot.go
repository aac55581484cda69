package main

import (
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
func learnerSnapshot(ctx context.Context, p *plan, s server) (_ []figures, err error) {
	c, err := filledCluster(ctx, p, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	if err := fillLarge(ctx, c, p.snapshotMiB); err != nil {
		return nil, err
	}
	pause(ctx, settling)
	workers, err := openWorkers(ctx, c, snapshotWriters)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeWorkers(workers) }() // everything was answered
	measure := func(when string, stop func() bool) (figures, error) {
		f := newFigures(fmt.Sprintf("learner-snapshot %d MiB, %s", p.snapshotMiB, when))
		forget(workers)
		begun := c.read()
		var phase atomic.Int32
		phase.Store(measuring)
		wait := startLoop(ctx, workers, put, &phase)
		for ctx.Err() == nil && !stop() {
			pause(ctx, retryEvery)
		}
		ended := c.read()
		phase.Store(ending)
		wait()
		f.charge(begun, ended, workers)
		f.set(waitMillis, millis(ended.at.Sub(begun.at)))
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
	m, err := c.admit(ctx, c.control.MemberAddAsLearner)
	if err != nil {
		return nil, err
	}
	during, err := measure("during", c.caughtUp(ctx, m))
	if err != nil {
		return nil, err
	}
	later, err := measure("after", after(p.warm+p.length))
	return []figures{before, during, later}, err
}

// caughtUp reports whether a learner has applied what the cluster had when it was asked for the first time.
func (c *cluster) caughtUp(ctx context.Context, m *member) func() bool {
	target, deadline := uint64(0), time.Now().Add(snapshotDeadline)
	status := func(address string) *clientv3.StatusResponse {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		answer, err := c.control.Status(limited, address)
		if err != nil {
			return nil
		}
		return answer
	}
	return func() bool {
		if target == 0 {
			if first := status(c.members[0].clientAddr); first != nil {
				target = first.RaftAppliedIndex
			}
			return false
		}
		own := status(m.clientAddr)
		return own != nil && own.RaftAppliedIndex >= target || time.Now().After(deadline)
	}
}

// fillLarge writes so many MiB in values of 16 KiB, 64 in a transaction. The writes measured before the learner joins
// then make both servers cut their logs below it: etcd keeps 5,000 entries and cuts every 10,000.
func fillLarge(ctx context.Context, c *cluster, mib int) error {
	const batch = 64
	source := rand.NewChaCha8([32]byte{2})
	value := make([]byte, largeValue)
	for i := 0; i < mib<<20/largeValue; i += batch {
		puts := make([]clientv3.Op, batch)
		for n := range puts {
			_, _ = source.Read(value) // never fails
			puts[n] = clientv3.OpPut(fmt.Sprintf("large%08d", i+n), string(value))
		}
		if _, err := c.control.Txn(ctx).Then(puts...).Commit(); err != nil {
			return fmt.Errorf("fill with large values from %d: %w", i, err)
		}
	}
	return nil
}
