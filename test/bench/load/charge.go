package load

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"

	"fmt"
	"os"

	"github.com/quorate/quorate/test/bench/latency"
)

// Latencies sets what the workers did between two readings of the meters.
func Latencies(f *figures.Row, from, to cluster.Reading, workers []*Worker) (done float64) {
	times, wrong := Times(workers), 0
	for _, w := range workers {
		if wrong += w.Errors; w.failed != nil {
			fmt.Fprintf(os.Stderr, "%s: a client's first error: %v\n", f.Workload, w.failed)
		}
	}
	done = float64(times.Count())
	f.Set(figures.Failures, float64(wrong))
	f.Set(figures.PerSecond, done/to.At.Sub(from.At).Seconds())
	if done > 0 {
		f.Set(figures.MedianMillis, figures.Millis(times.Quantile(0.50)))
		f.Set(figures.P99Millis, figures.Millis(times.Quantile(0.99)))
	}
	return done
}

// Times are those of all workers together.
func Times(workers []*Worker) *latency.Histogram {
	all := &latency.Histogram{}
	for _, w := range workers {
		all.Add(&w.Times)
	}
	return all
}

// Charge works out what happened between two readings of the meters, and what one operation cost.
func Charge(f *figures.Row, from, to cluster.Reading, workers []*Worker) {
	done := Latencies(f, from, to, workers)
	servers, generator := to.Servers-from.Servers, to.Generator-from.Generator
	f.Set(figures.OthersPercent, cluster.Others(from, to))
	if done > 0 {
		f.Set(figures.ServerMicros, figures.Micros(servers)/done)
		f.Set(figures.ClientMicros, figures.Micros(generator)/done)
	}
}
