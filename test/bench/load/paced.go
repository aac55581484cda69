package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
)

// Paced does so many operations a second for a time, each at the moment at which it is due, as far as there are workers left.
// What each one took counts from when it was due: who stalls pays for what was due meanwhile. told gets them from many
// goroutines, also those that failed.
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
