package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
)

// Steadily begins something at a fixed pace, whatever became of what it began before, until ctx ends or begin returns nothing
// more to do, and returns once all has ended.
func Steadily(ctx context.Context, every time.Duration, begin func(i int) (do func())) {
	var group sync.WaitGroup
	defer group.Wait()
	pace := time.NewTicker(every)
	defer pace.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		do := begin(i)
		if do == nil {
			return
		}
		group.Go(do)
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
}

// Paced does so many operations a second for a time, each at the moment at which it is due, as far as there are workers left.
// The time of each counts from when it was due: a server that stalls pays for the operations that were due meanwhile. told
// gets them from many goroutines, also those that failed.
func Paced(
	ctx context.Context, workers []*Worker, operate func(context.Context, *Worker) error, rate float64,
	length time.Duration, told func(due, took time.Duration, err error),
) {
	begun := time.Now()
	all := int64(rate * length.Seconds())
	var next atomic.Int64
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1) - 1
				if n >= all {
					return
				}
				due := time.Duration(float64(n) / rate * float64(time.Second))
				cluster.Pause(ctx, time.Until(begun.Add(due)))
				limited, cancel := context.WithTimeout(ctx, OperationTimeout)
				err := operate(limited, w)
				cancel()
				told(due, time.Since(begun)-due, err)
			}
		})
	}
	group.Wait()
}
