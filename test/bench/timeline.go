package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/latency"
	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/bench/pictures"
)

const (
	timelineWorkers = 256 // puts in flight at most
	timelineWarm    = 3 * time.Second
)

// timeline is an open load of puts beside which history is compacted.
type timeline struct {
	rate          float64
	length, every time.Duration
	defrag        time.Duration // when; 0: not at all
}

func timelines(f *flags) func() ([]trial, error) {
	rate := f.decimal("rate", "1000", "latency: puts a second", 1, 1e6)
	length := f.duration("timeline", "1m", "latency: how long", time.Second)
	every := f.duration("compact-every", "10s", "latency: compactions of history", 1)
	defrag := f.duration("defrag-at", "45s", "latency: when members are defragmented; 0: never", 0)
	return func() ([]trial, error) {
		t := &timeline{rate: *rate, length: *length, every: *every, defrag: *defrag}
		return []trial{{filled: true, do: t.measure}}, nil
	}
}

// measure loads a fresh cluster.
func (t *timeline) measure(ctx context.Context, b *bed) (_ []figures.Row, err error) {
	c := b.Cluster
	workers, err := load.Open(ctx, c, timelineWorkers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, load.Close(workers)) }()
	load.Paced(ctx, workers, load.Put, t.rate, timelineWarm, func(time.Duration, time.Duration, error) {})
	var group sync.WaitGroup
	var marks []pictures.Mark
	var failed error
	begun := time.Now()
	group.Go(func() { marks, failed = t.disturb(ctx, c, begun) })
	out := &pictures.Timeline{Rate: t.rate}
	group.Go(func() { out.Others = t.others(ctx, c, begun) })
	seconds := make([]latency.Histogram, int(t.length/time.Second))
	var mu sync.Mutex
	load.Paced(ctx, workers, load.Put, t.rate, t.length, func(due, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			out.Failed++
		} else if at := int(due / time.Second); at < len(seconds) {
			seconds[at].Record(took)
		}
	})
	group.Wait()
	var all latency.Histogram
	for i := range seconds {
		all.Add(&seconds[i])
		out.Median = append(out.Median, rounded(figures.Millis(seconds[i].Quantile(0.50))))
		out.P99 = append(out.P99, rounded(figures.Millis(seconds[i].Quantile(0.99))))
	}
	out.Marks = marks
	row := figures.NewRow(fmt.Sprintf("timeline of %.0f puts a second", t.rate))
	row.Latencies(all.Count(), all.Quantile, all.Longest(), t.length)
	row.Set(figures.Failures, float64(out.Failed))
	row.Detail = out
	return []figures.Row{row}, errors.Join(failed, ctx.Err())
}

// others says what other processes took of the machine in each second.
func (t *timeline) others(ctx context.Context, c *cluster.Cluster, begun time.Time) (percent []float64) {
	from := c.Read()
	for at := time.Second; at <= t.length && ctx.Err() == nil; at += time.Second {
		cluster.Pause(ctx, time.Until(begun.Add(at)))
		to := c.Read()
		percent = append(percent, float64(int(cluster.Others(from, to))))
		from = to
	}
	return percent
}

// disturb compacts history again and again, each time up to where the store was the time before, and defragments each member
// once.
func (t *timeline) disturb(ctx context.Context, c *cluster.Cluster, begun time.Time) (marks []pictures.Mark, err error) {
	var mu sync.Mutex
	do := func(what string, ask func() error) {
		from := time.Since(begun)
		failed := ask()
		mu.Lock()
		defer mu.Unlock()
		to := time.Since(begun)
		marks = append(marks, pictures.Mark{What: what, From: rounded(from.Seconds()), To: rounded(to.Seconds())})
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", what, failed))
		}
	}
	var group sync.WaitGroup
	if t.defrag > 0 && t.defrag < t.length {
		group.Go(func() {
			cluster.Pause(ctx, time.Until(begun.Add(t.defrag)))
			for _, m := range c.Members {
				do(pictures.Defragmentation, func() error {
					_, err := c.Control.Defragment(ctx, m.ClientAddr)
					return err
				})
			}
		})
	}
	answer, err := c.Control.Get(ctx, load.KeyAt(0))
	if err != nil {
		return nil, err
	}
	before := answer.Header.Revision
	for at := t.every; at < t.length && ctx.Err() == nil; at += t.every {
		cluster.Pause(ctx, time.Until(begun.Add(at)))
		do(pictures.Compaction, func() error {
			_, err := c.Control.Compact(ctx, before, clientv3.WithCompactPhysical())
			if err != nil {
				return err
			}
			answer, err := c.Control.Get(ctx, load.KeyAt(0))
			if err == nil {
				before = answer.Header.Revision
			}
			return err
		})
	}
	group.Wait()
	return marks, err
}
