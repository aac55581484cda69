package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
)

const (
	narrowLimit  = 10 * time.Minute // of one scenario, and what its snapshot takes
	narrowSettle = 3 * time.Second
)

// narrow does something to members whose links are still wide, and measures what becomes of small puts, and of the links, while
// much has to go over them once they are narrow.
func narrow(name string, run func(ctx context.Context, r *narrowRun) error) planner {
	return func(f *flags) func() ([]trial, error) {
		rates := take(f, "rates", "1,4,12", "10^6 bytes a second of each link, with commas between",
			listOf(within(parseFloat, 0.1, 1000)))
		trip := f.duration("trip", "20ms", "round trip between any two members", 0)
		mib := f.number("snapshot", "64", "MiB of the snapshot", 1, 1024)
		return func() (all []trial, err error) {
			for _, rate := range *rates {
				t := trial{name: fmt.Sprintf("%s, %g MB/s", name, rate),
					on: cluster.Conditions{Way: func(int, int) time.Duration { return *trip / 2 }}}
				t.do = func(ctx context.Context, b *bed) ([]figures.Row, error) {
					r := &narrowRun{Cluster: b.Cluster, rate: int64(rate * 1e6), trip: *trip, snapshotMiB: *mib}
					if err := r.measure(ctx, run); err != nil {
						return nil, err
					}
					return []figures.Row{r.row(t.name)}, nil
				}
				all = append(all, t)
			}
			return all, nil
		}
	}
}

// measure runs one scenario.
func (r *narrowRun) measure(ctx context.Context, run func(context.Context, *narrowRun) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, narrowLimit+2*r.wait(int64(r.snapshotMiB)<<20))
	defer cancel()
	if r.leader, err = r.Leader(ctx); err != nil {
		return err
	}
	cluster.Pause(ctx, narrowSettle) // members measure how far they are from each other
	return run(ctx, r)
}
