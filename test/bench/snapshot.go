package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"fmt"
	"math"
	"math/rand/v2"
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
func learnerSnapshot(f *flags) func() ([]trial, error) {
	w := f.window()
	mib := f.number("snapshot", "1024", "learner-snapshot: MiB of values of 16 KiB to write first", 1, math.MaxInt)
	do := func(ctx context.Context, b *bed) (_ []figures.Row, err error) {
		if err := fillLarge(ctx, b.Cluster, *mib); err != nil {
			return nil, err
		}
		cluster.Pause(ctx, settling)
		workers, err := load.Open(ctx, b.Cluster, snapshotWriters)
		if err != nil {
			return nil, err
		}
		defer func() { _ = load.Close(workers) }() // everything was answered
		name, length := fmt.Sprintf("learner-snapshot %d MiB, ", *mib), *w.warm+*w.length
		before, err := writeUntil(ctx, b.Cluster, workers, name+"before", after(length))
		if err != nil {
			return nil, err
		}
		m, err := b.Admit(ctx, b.Control.MemberAddAsLearner)
		if err != nil {
			return nil, err
		}
		during, err := writeUntil(ctx, b.Cluster, workers, name+"during", caughtUp(ctx, b.Cluster, m))
		if err != nil {
			return nil, err
		}
		later, err := writeUntil(ctx, b.Cluster, workers, name+"after", after(length))
		return []figures.Row{before, during, later}, err
	}
	return func() ([]trial, error) { return []trial{{filled: true, do: do}}, nil }
}

// after is for writeUntil: it stops after some time.
func after(d time.Duration) func() (bool, error) {
	begun := time.Now()
	return func() (bool, error) { return time.Since(begun) > d, nil }
}

// caughtUp reports whether a learner has applied what the cluster had when it was asked for the first time.
func caughtUp(ctx context.Context, c *cluster.Cluster, m *cluster.Member) func() (bool, error) {
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
	return func() (bool, error) {
		if target == 0 {
			if first := status(c.Members[0].ClientAddr); first != nil {
				target = first.RaftAppliedIndex
			}
			return false, nil
		}
		own := status(m.ClientAddr)
		return own != nil && own.RaftAppliedIndex >= target || time.Now().After(deadline), nil
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
