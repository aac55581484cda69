package load

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"

	"context"
	"slices"
	"sync"
	"time"
)

const (
	probeEvery  = 10 * time.Millisecond
	probeBefore = 2 * time.Second // before the fault
	probeAfter  = 10 * time.Second
	probers     = 4 // connections
)

// Probe begins a write every 10 ms, whatever became of the earlier ones, and finds the longest time without a
// successful end of one from the moment on in which the fault begins. The probing clients know the first members.
func Probe(ctx context.Context, c *cluster.Cluster, name string, fault func(context.Context) error) (figures.Row, error) {
	f := figures.NewRow(name)
	clients, err := c.ConnectAll(probers)
	defer func() {
		for _, client := range clients {
			_ = client.Close() // says only that it was cut off
		}
	}()
	if err != nil {
		return f, err
	}
	var probes probeLog
	keys := NewChooser(0)
	begun, struck, end, outcome := time.Now(), time.Time{}, time.Time{}, make(chan error, 1)
	Steadily(ctx, probeEvery, func(i int) func() {
		end = time.Now()
		if end.Sub(begun) >= probeBefore+probeAfter {
			return nil
		}
		if struck.IsZero() && end.Sub(begun) >= probeBefore {
			struck = end
			go func() { outcome <- fault(ctx) }()
		}
		key, value := keys.Key(), keys.Value()
		return func() {
			limited, cancel := context.WithTimeout(ctx, OperationTimeout)
			defer cancel()
			_, err := clients[i%probers].Put(limited, key, value)
			probes.add(time.Now(), err)
		}
	})
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	f.Set(figures.WaitMillis, figures.Millis(LongestGap(probes.succeeded, struck, end)))
	f.Set(figures.QuietMillis, figures.Millis(LongestGap(probes.succeeded, begun, struck)))
	f.Set(figures.Failures, float64(probes.failed))
	return f, <-outcome
}

// probeLog takes the ends of probes, in any order.
type probeLog struct {
	mu        sync.Mutex
	succeeded []time.Time
	failed    int
}

func (l *probeLog) add(at time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed++
		return
	}
	l.succeeded = append(l.succeeded, at)
}

// LongestGap is the longest time between two ends that follow each other from begin to end, both borders included: the
// first gap begins with the last success before begin.
func LongestGap(ends []time.Time, begin, end time.Time) time.Duration {
	slices.SortFunc(ends, time.Time.Compare)
	last, longest := begin, time.Duration(0)
	for _, at := range ends {
		switch {
		case at.After(end):
		case at.Before(begin):
			last = at
		default:
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return max(longest, end.Sub(last))
}
