package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/audience"
)

// fanOut has one client write one key that many watch, and measures from the begin of a write until a watch is told of it.
func fanOut(f *flags) func() ([]trial, error) {
	w := f.window()
	watchers := f.numbers("watchers", "1000", "watch: numbers of watchers of one key")
	streams := f.number("streams", "50", "watch: streams that the watchers share, each on its connection", 1, math.MaxInt)
	return func() (all []trial, err error) {
		for _, n := range *watchers {
			all = append(all, trial{name: fmt.Sprintf("watch by %d", n),
				do: func(ctx context.Context, b *bed) ([]figures.Row, error) {
					row, err := fanOutTo(ctx, b.Cluster, n, min(*streams, n), w)
					return []figures.Row{row}, err
				}})
		}
		return all, nil
	}
}

func fanOutTo(ctx context.Context, c *cluster.Cluster, watchers, streams int, w window) (f figures.Row, err error) {
	f = figures.NewRow(fmt.Sprintf("watch w=%d s=%d", watchers, streams))
	writer, err := cluster.Connect(c.Members[0].ClientAddr)
	if err != nil {
		return f, err
	}
	a := audience.New(watchers)
	defer func() { err = errors.Join(err, a.Close(), writer.Close()) }()
	err = a.Open(ctx, streams, func(i int) (*clientv3.Client, error) {
		return cluster.Connect(c.Members[i%len(c.Members)].ClientAddr)
	})
	if err != nil {
		return f, err
	}
	values := load.NewChooser(1)
	write := func(length time.Duration) error {
		for begun := time.Now(); time.Since(begun) < length; {
			if err := a.Tell(ctx, writer, values.Value()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(*w.warm); err != nil {
		return f, err
	}
	c.ForgetPeaks()
	a.Measure()
	from := c.Read()
	if err := write(*w.length); err != nil {
		return f, err
	}
	to := c.Read()
	f.Set(figures.ResidentMiB, c.Resident("VmHWM"))
	load.Charge(&f, from, to, []*load.Worker{{Times: a.Times()}})
	return f, nil
}
