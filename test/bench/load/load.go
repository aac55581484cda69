package load

import (
	"github.com/quorate/quorate/test/bench/cluster"

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
	OperationTimeout = 10 * time.Second
	PauseAfterError  = 20 * time.Millisecond // as an application backs off; else one fast failure counts thousandfold
)

// The phases of a measurement.
const (
	warming int32 = iota
	Measuring
	Ending
)

// Worker is one client with a connection of its own to one member.
type Worker struct {
	Number int
	Client *clientv3.Client
	Keys   Chooser
	seen   map[string]int64 // txn: revisions of the keys that are this worker's alone
	leases leases           // keepalive
	Times  latency.Histogram
	Errors int
	failed error         // the first one
	Rest   time.Duration // after each operation
	Every  time.Duration // from the begin of an operation to that of the next one, at least
	made   int           // operations on keys of its own
}

// leases are what a worker holds, and the stream on which it renews them.
type leases struct {
	ids    []int64
	stream grpc.BidiStreamingClient[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse]
	cancel context.CancelFunc // of the stream
}

// Open connects n clients round robin over the members, and makes each ask once so that it is connected.
func Open(ctx context.Context, c *cluster.Cluster, n int) ([]*Worker, error) {
	workers := make([]*Worker, n)
	for i := range workers {
		client, err := c.Connect(c.Members[i%len(c.Members)].ClientAddr)
		if err != nil {
			return nil, errors.Join(err, Close(workers[:i]))
		}
		workers[i] = &Worker{Number: i, Client: client, Keys: NewChooser(uint64(i))}
	}
	err := Each(workers, func(w *Worker) error {
		_, err := w.Client.Get(ctx, w.Keys.Key())
		return err
	})
	if err != nil {
		return nil, errors.Join(err, Close(workers))
	}
	return workers, nil
}

func Close(workers []*Worker) error {
	return Each(workers, func(w *Worker) error { return w.Client.Close() })
}

// Forget begins the workers' figures anew.
func Forget(workers []*Worker) {
	for _, w := range workers {
		w.Times, w.Errors = latency.Histogram{}, 0
	}
}

// Each does something for all workers, 32 at a time.
func Each(workers []*Worker, do func(*Worker) error) error {
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

// Window opens the measurement after warm, closes it after length and returns the meters at both ends.
func Window(
	ctx context.Context, c *cluster.Cluster, phase *atomic.Int32, warm, length time.Duration,
) (from, to cluster.Reading) {
	cluster.Pause(ctx, warm)
	c.ForgetPeaks()
	from = c.Read()
	phase.Store(Measuring)
	cluster.Pause(ctx, length)
	phase.Store(Ending)
	return from, c.Read()
}

// ClosedLoop lets every worker begin its next operation when the last one returned.
func ClosedLoop(
	ctx context.Context, c *cluster.Cluster, workers []*Worker, operate func(context.Context, *Worker) error,
	warm, length time.Duration,
) (from, to cluster.Reading) {
	var phase atomic.Int32
	wait := StartLoop(ctx, workers, operate, &phase)
	from, to = Window(ctx, c, &phase, warm, length)
	wait()
	return from, to
}

// StartLoop starts the closed loops, which go on until the phase says that they end; then wait returns.
func StartLoop(
	ctx context.Context, workers []*Worker, operate func(context.Context, *Worker) error, phase *atomic.Int32,
) (wait func()) {
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			for phase.Load() != Ending && ctx.Err() == nil {
				limited, cancel := context.WithTimeout(ctx, OperationTimeout)
				begun := time.Now()
				err := operate(limited, w)
				took := time.Since(begun)
				cancel()
				counts := phase.Load() == Measuring
				switch {
				case err != nil && (counts || errors.Is(err, context.DeadlineExceeded)):
					w.Errors++
					w.failed = cmp.Or(w.failed, err)
					cluster.Pause(ctx, PauseAfterError)
				case err != nil:
					cluster.Pause(ctx, PauseAfterError)
				case counts:
					w.Times.Record(took)
				}
				if pause := max(w.Rest, time.Until(begun.Add(w.Every))); pause > 0 {
					cluster.Pause(ctx, pause)
				}
			}
		})
	}
	return group.Wait
}
