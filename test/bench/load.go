package main

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/test/bench/latency"
)

const (
	operationTimeout = 10 * time.Second
	pauseAfterError  = 20 * time.Millisecond // as an application backs off; else one fast failure counts thousandfold
)

// The phases of a measurement.
const (
	warming int32 = iota
	measuring
	ending
)

// worker is one client with a connection of its own to one member.
type worker struct {
	number int
	client *clientv3.Client
	keys   chooser
	seen   map[string]int64 // txn: revisions of the keys that are this worker's alone
	leases leases           // keepalive
	times  latency.Histogram
	errors int
	failed error         // the first one
	rest   time.Duration // after each operation
}

// leases are what a worker holds, and the stream on which it renews them.
type leases struct {
	ids    []int64
	stream grpc.BidiStreamingClient[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse]
	cancel context.CancelFunc // of the stream
}

// openWorkers connects n clients round robin over the members, and makes each ask once so that it is connected.
func openWorkers(ctx context.Context, c *cluster, n int) ([]*worker, error) {
	workers := make([]*worker, n)
	for i := range workers {
		client, err := connect(c.members[i%len(c.members)].clientAddr)
		if err != nil {
			return nil, errors.Join(err, closeWorkers(workers[:i]))
		}
		workers[i] = &worker{number: i, client: client, keys: newChooser(uint64(i))}
	}
	err := eachWorker(workers, func(w *worker) error {
		_, err := w.client.Get(ctx, w.keys.key())
		return err
	})
	if err != nil {
		return nil, errors.Join(err, closeWorkers(workers))
	}
	return workers, nil
}

func closeWorkers(workers []*worker) error {
	return eachWorker(workers, func(w *worker) error { return w.client.Close() })
}

// forget begins the workers' figures anew.
func forget(workers []*worker) {
	for _, w := range workers {
		w.times, w.errors = latency.Histogram{}, 0
	}
}

// eachWorker does something for all workers, 32 at a time.
func eachWorker(workers []*worker, do func(*worker) error) error {
	var group sync.WaitGroup
	slots := make(chan struct{}, 32)
	failures := make([]error, len(workers))
	for i, w := range workers {
		slots <- struct{}{}
		group.Go(func() {
			failures[i] = do(w)
			<-slots
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// reading is the state of the meters at one instant.
type reading struct {
	at                           time.Time
	servers, generator, everyone time.Duration
}

func (c *cluster) read() reading {
	return reading{at: time.Now(), servers: c.cpuTime(), generator: ownCPUTime(), everyone: machineTime()}
}

// window opens the measurement after warm, closes it after length and returns the meters at both ends.
func (c *cluster) window(ctx context.Context, phase *atomic.Int32, warm, length time.Duration) (from, to reading) {
	pause(ctx, warm)
	c.forgetPeaks()
	from = c.read()
	phase.Store(measuring)
	pause(ctx, length)
	phase.Store(ending)
	return from, c.read()
}

// closedLoop lets every worker begin its next operation when the last one returned.
func (c *cluster) closedLoop(
	ctx context.Context, workers []*worker, operate func(context.Context, *worker) error, warm, length time.Duration,
) (from, to reading) {
	var phase atomic.Int32
	wait := startLoop(ctx, workers, operate, &phase)
	from, to = c.window(ctx, &phase, warm, length)
	wait()
	return from, to
}

// startLoop starts the closed loops, which go on until the phase says that they end; then wait returns.
func startLoop(
	ctx context.Context, workers []*worker, operate func(context.Context, *worker) error, phase *atomic.Int32,
) (wait func()) {
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			for phase.Load() != ending && ctx.Err() == nil {
				limited, cancel := context.WithTimeout(ctx, operationTimeout)
				begun := time.Now()
				err := operate(limited, w)
				took := time.Since(begun)
				cancel()
				counts := phase.Load() == measuring
				switch {
				case err != nil && (counts || errors.Is(err, context.DeadlineExceeded)):
					w.errors++
					w.failed = cmp.Or(w.failed, err)
					pause(ctx, pauseAfterError)
				case err != nil:
					pause(ctx, pauseAfterError)
				case counts:
					w.times.Record(took)
				}
				if w.rest > 0 {
					pause(ctx, w.rest)
				}
			}
		})
	}
	return group.Wait
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
